"""The detector of regions on scans: its pages, its training, its measures, its export."""

/* A small model on a CPU, in float32: the encoder's convolutions and the decoder, each one call where PyTorch takes dozens.

   vision.py and ocr.py say the same in PyTorch, which trains, and serves every other device and number format; compiled.py
   packs the weights and calls this. Widths are multiples of PANEL. No threads: the engine deals crops out to threads.

   A matrix of `length` inputs and `width` outputs is kept in panels of 16 outputs: [width / PANEL][length][PANEL]. A panel
   times six rows keeps twelve of AVX2's sixteen registers as sums and reads each weight once. Every sum is taken in the
   same order however many rows there are, so that what a row gives does not depend on its company, to the last bit. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LANES 8  /* of a vector */
#define PANEL 16 /* outputs of a panel */
#define HEAD 64 /* width of an attention head */
#define INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t ivec __attribute__((vector_size(4 * LANES)));
typedef float half __attribute__((vector_size(2 * LANES)));
typedef vec stored __attribute__((aligned(4), may_alias)); /* among other floats */

typedef struct {
    const float *weight, *bias; /* bias: NULL for none */
    int32_t length, width;
} Matrix;

typedef struct {
    const float *norm;
    Matrix first, second; /* convolutions for `convolved`: 16 matrices behind each other */
} StemBlock;

typedef struct {
    Matrix conv; /* 3x3: inputs [3][3][in] */
    const float *norm;
    const StemBlock *blocks;
    int32_t depth;
} Stage;

typedef struct {
    Matrix query, key_value, out, gate_up, down;
    const float *before_attention, *behind_attention, *before_mlp, *behind_mlp;
} Layer;

typedef struct {
    const Layer *layers;
    const float *norm, *frequency; /* frequency: of the HEAD / 2 rotary pairs */
    const int32_t *axis;           /* which of the three positions each pair turns with */
    int32_t depth, heads, shared;  /* shared: heads of keys and values */
    float eps;
} Decoder;

/* --- elements ----------------------------------------------------------------------------------------------------- */

INLINE vec load(const float *from) { return *(const stored *)from; }
INLINE void keep(float *to, vec value) { *(stored *)to = value; }

INLINE float total(vec value) {
    half halves[2];
    memcpy(halves, &value, sizeof value);
    const half four = halves[0] + halves[1];
    return (four[0] + four[1]) + (four[2] + four[3]);
}

INLINE vec chosen(ivec which, vec yes, vec no) { return (vec)(((ivec)yes & which) | ((ivec)no & ~which)); }

/* e^x within 2 units in the last place; below -87 the smallest normal numbers. */
INLINE vec exponential(vec x) {
    const vec zero = {0}, low = zero - 87.0f, high = zero + 88.0f;
    x = chosen(x < low, low, chosen(x > high, high, x));
    vec scaled = x * 1.44269504f;
    ivec power = __builtin_convertvector(scaled + chosen(scaled < zero, zero - 0.5f, zero + 0.5f), ivec);
    vec whole = __builtin_convertvector(power, vec);
    vec rest = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
    vec sum = zero + 1.9875691e-4f;
    sum = sum * rest + 1.3981999e-3f;
    sum = sum * rest + 8.3334519e-3f;
    sum = sum * rest + 4.1665796e-2f;
    sum = sum * rest + 1.6666665e-1f;
    sum = sum * rest + 5.0e-1f;
    sum = sum * rest * rest + rest + 1.0f;
    return sum * (vec)((power + 127) << 23);
}

INLINE vec silu(vec x) { return x / (exponential(-x) + 1.0f); }

/* What a row is multiplied with so that its root mean square is 1. */
INLINE float scale_of(const float *row, int size, float eps) {
    vec sum = {0};
    for (int i = 0; i < size; i += LANES) sum += load(row + i) * load(row + i);
    return 1.0f / sqrtf(total(sum) / size + eps);
}

INLINE void normed(const float *row, const float *weight, float *out, int size, float eps) {
    float scale = scale_of(row, size, eps);
    for (int i = 0; i < size; i += LANES) keep(out + i, load(row + i) * scale * load(weight + i));
}

static void norm_rows(const float *x, int rows, int width, const float *weight, float eps, float *out) {
    for (; rows--; x += width, out += width) normed(x, weight, out, width, eps);
}

/* --- products ----------------------------------------------------------------------------------------------------- */

/* N rows times a panel. The inputs of a row are `runs` runs of `length`, `hop` apart; rows are `stride` apart. */
#define TILE(N)                                                                                                        \
    INLINE void tile##N(const float *a, ptrdiff_t stride, int runs, ptrdiff_t hop, int length, const float *panel,     \
                           const float *bias, float *out, ptrdiff_t width) {                                           \
        vec left[N], right[N];                                                                                         \
        for (int r = 0; r < N; r++) {                                                                                  \
            left[r] = bias ? load(bias) : (vec){0};                                                                    \
            right[r] = bias ? load(bias + LANES) : (vec){0};                                                           \
        }                                                                                                              \
        for (int run = 0; run < runs; run++)                                                                           \
            for (int k = 0; k < length; k++, panel += PANEL)                                                           \
                for (int r = 0; r < N; r++) {                                                                          \
                    left[r] += a[r * stride + run * hop + k] * load(panel);                                            \
                    right[r] += a[r * stride + run * hop + k] * load(panel + LANES);                                   \
                }                                                                                                      \
        for (int r = 0; r < N; r++, out += width) {                                                                    \
            keep(out, left[r]);                                                                                        \
            keep(out + LANES, right[r]);                                                                               \
        }                                                                                                              \
    }
TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6)

/* One row times four panels: a single one would wait for its sums. */
INLINE void tile_wide(const float *a, int length, const float *panel, float *out) {
    const size_t size = (size_t)PANEL * length;
    vec left[4] = {{0}}, right[4] = {{0}};
    for (int k = 0; k < length; k++, panel += PANEL)
        for (int p = 0; p < 4; p++) {
            left[p] += a[k] * load(panel + p * size);
            right[p] += a[k] * load(panel + p * size + LANES);
        }
    for (int p = 0; p < 4; p++, out += PANEL) {
        keep(out, left[p]);
        keep(out + LANES, right[p]);
    }
}

/* Rows times a matrix; the arguments are those of a tile. */
static void product(const float *a, ptrdiff_t stride, int rows, int runs, ptrdiff_t hop, Matrix m, float *out) {
    const int length = m.length / runs;
    const float *panel = m.weight;
    int c = 0;
    if (rows == 1 && runs == 1 && !m.bias)
        for (; c + 4 * PANEL <= m.width; c += 4 * PANEL, panel += (size_t)4 * PANEL * length)
            tile_wide(a, length, panel, out + c);
    for (; c < m.width; c += PANEL, panel += (size_t)PANEL * m.length) {
        const float *bias = m.bias ? m.bias + c : 0, *from = a;
        float *to = out + c;
        int left = rows;
        for (; left >= 6; left -= 6, from += 6 * stride, to += 6 * (size_t)m.width)
            tile6(from, stride, runs, hop, length, panel, bias, to, m.width);
        switch (left) {
        case 1: tile1(from, stride, runs, hop, length, panel, bias, to, m.width); break;
        case 2: tile2(from, stride, runs, hop, length, panel, bias, to, m.width); break;
        case 3: tile3(from, stride, runs, hop, length, panel, bias, to, m.width); break;
        case 4: tile4(from, stride, runs, hop, length, panel, bias, to, m.width); break;
        case 5: tile5(from, stride, runs, hop, length, panel, bias, to, m.width); break;
        }
    }
}

/* Rows that lie behind each other, [rows, length] -> [rows, width]. */
static void linear(const float *a, int rows, const Matrix *m, float *out) {
    product(a, m->length, rows, 1, 0, *m, out);
}

/* --- the encoder's stem ------------------------------------------------------------------------------------------- */

/* A frame is pixels [rows, columns, width] with a border of zeros of one pixel. */
static void clear_border(float *frame, int rows, int columns, int width) {
    const size_t line = (size_t)(columns + 2) * width, pixel = 4 * (size_t)width;
    memset(frame, 0, 4 * line);
    memset(frame + (rows + 1) * line, 0, 4 * line);
    for (int y = 1; y <= rows; y++) {
        memset(frame + y * line, 0, pixel);
        memset(frame + (y + 1) * line - width, 0, pixel);
    }
}

/* Pixels, normed where there is a norm, through SiLU where `active`, as a frame. */
static void framed(const float *x, int rows, int columns, int width, const float *norm, float eps, int active,
                   float *frame) {
    clear_border(frame, rows, columns, width);
    for (int y = 1; y <= rows; y++) {
        float *out = frame + ((size_t)y * (columns + 2) + 1) * width;
        for (int column = 0; column < columns; column++, x += width, out += width) {
            const float scale = norm ? scale_of(x, width, eps) : 1.0f;
            for (int i = 0; i < width; i += LANES) {
                const vec value = norm ? load(x + i) * scale * load(norm + i) : load(x + i);
                keep(out + i, active ? silu(value) : value);
            }
        }
    }
}

/* A 3x3 convolution of a frame in steps of 2 -> [rows / 2, columns / 2, width]. */
static void halved(const float *frame, int rows, int columns, Matrix m, float *out) {
    const int in = m.length / 9;
    const ptrdiff_t line = (ptrdiff_t)(columns + 2) * in;
    for (int y = 0; y < rows; y += 2, out += (size_t)(columns / 2) * m.width)
        product(frame + y * line, 2 * in, columns / 2, 3, line, m, out);
}

/* Winograd's way to 2 x 2 outputs of a 3x3 convolution from 4 x 4 inputs, F(2x2, 3x3) of Lavin and Gray 2016: 16
   products of tiles with matrices, each tile's inputs and outputs turned before and after by sums: 2.25 times fewer
   multiplications. TILES at once stay in the caches. */
#define TILES 48

INLINE void spread(const float *from, ptrdiff_t line, int width, float *to, size_t step) {
    for (int i = 0; i < width; i += LANES, from += LANES, to += LANES) {
        vec t[4][4];
        for (int b = 0; b < 4; b++) {
            const float *x = from + b * width;
            const vec d0 = load(x), d1 = load(x + line), d2 = load(x + 2 * line), d3 = load(x + 3 * line);
            t[0][b] = d0 - d2, t[1][b] = d1 + d2, t[2][b] = d2 - d1, t[3][b] = d1 - d3;
        }
        for (int a = 0; a < 4; a++) {
            keep(to + (4 * a + 0) * step, t[a][0] - t[a][2]);
            keep(to + (4 * a + 1) * step, t[a][1] + t[a][2]);
            keep(to + (4 * a + 2) * step, t[a][2] - t[a][1]);
            keep(to + (4 * a + 3) * step, t[a][1] - t[a][3]);
        }
    }
}

INLINE void gathered(const float *from, size_t step, const float *bias, int width, int residual, float *out,
                     ptrdiff_t line) {
    for (int i = 0; i < width; i += LANES, from += LANES, out += LANES) {
        vec t[2][4];
        for (int b = 0; b < 4; b++) {
            const float *m = from + b * step;
            const vec m0 = load(m), m1 = load(m + 4 * step), m2 = load(m + 8 * step), m3 = load(m + 12 * step);
            t[0][b] = m0 + m1 + m2, t[1][b] = m1 - m2 - m3;
        }
        for (int a = 0; a < 2; a++) {
            float *to = out + a * line;
            const vec one = t[a][0] + t[a][1] + t[a][2] + load(bias + i);
            const vec two = t[a][1] - t[a][2] - t[a][3] + load(bias + i);
            keep(to, residual ? load(to) + one : silu(one));
            keep(to + width, residual ? load(to + width) + two : silu(two));
        }
    }
}

/* A 3x3 convolution of a frame, its outputs `line` apart: added to what is there, or through SiLU. */
static void convolved(const float *frame, int rows, int columns, Matrix m, int residual, float *out, ptrdiff_t line,
                      float *room) {
    const int width = m.width;
    const ptrdiff_t from_line = (ptrdiff_t)(columns + 2) * width;
    const size_t step = (size_t)TILES * width;
    Matrix part = {m.weight, 0, width, width};
    float *outputs = room + 16 * step;
    for (int y = 0; y < rows; y += 2)
        for (int x = 0; x < columns; x += 2 * TILES) {
            const int left = (columns - x) / 2, tiles = left < TILES ? left : TILES;
            for (int t = 0; t < tiles; t++)
                spread(frame + y * from_line + (x + 2 * t) * width, from_line, width, room + t * width, step);
            for (int k = 0; k < 16; k++) {
                part.weight = m.weight + (size_t)k * width * width;
                product(room + k * step, width, tiles, 1, 0, part, outputs + k * step);
            }
            for (int t = 0; t < tiles; t++)
                gathered(outputs + t * width, step, m.bias, width, residual, out + y * line + (x + 2 * t) * width, line);
        }
}

/* pixels [rows, columns] -> image tokens [rows / 2^count, columns / 2^count, width]. room: three times `size`, the
   floats of the largest frame, and those of the tiles. */
void stem(const Stage *stages, int count, float eps, const float *pixels, int rows, int columns, float *out,
          float *room, size_t size) {
    float *frame = room, *other = room + size, *x = room + 2 * size, *tiles = room + 3 * size;
    clear_border(frame, rows, columns, 1);
    for (int y = 0; y < rows; y++)
        memcpy(frame + (size_t)(y + 1) * (columns + 2) + 1, pixels + (size_t)y * columns, 4 * (size_t)columns);
    for (const Stage *stage = stages; stage < stages + count; stage++) {
        const int width = stage->conv.width;
        const ptrdiff_t line = (ptrdiff_t)(columns / 2) * width;
        halved(frame, rows, columns, stage->conv, x);
        rows /= 2, columns /= 2;
        if (stage == stages + count - 1) {
            norm_rows(x, rows * columns, width, stage->norm, eps, out);
            break;
        }
        framed(x, rows, columns, width, stage->norm, eps, 1, frame);
        if (!stage->depth) continue;
        for (int y = 0; y < rows; y++)
            memcpy(x + y * line, frame + (size_t)(y + 1) * (line + 2 * width) + width, 4 * (size_t)line);
        for (const StemBlock *block = stage->blocks; block < stage->blocks + stage->depth; block++) {
            framed(x, rows, columns, width, block->norm, eps, 0, frame);
            clear_border(other, rows, columns, width);
            convolved(frame, rows, columns, block->first, 0, other + line + 3 * width, line + 2 * width, tiles);
            convolved(other, rows, columns, block->second, 1, x, line, tiles);
        }
        framed(x, rows, columns, width, 0, eps, 0, frame);
    }
}

/* --- the decoder -------------------------------------------------------------------------------------------------- */

/* Turn the pairs (0, 1), (2, 3)... of so many heads. turn: cosine and sine of each pair. */
INLINE void rotate(float *x, int heads, const float *turn) {
    for (int h = 0; h < heads; h++, x += HEAD)
        for (int i = 0; i < HEAD; i += 2) {
            const float a = x[i], b = x[i + 1];
            x[i] = a * turn[i] - b * turn[i + 1];
            x[i + 1] = a * turn[i + 1] + b * turn[i];
        }
}

/* One query over the slots that its mask shows: keys and values are `slot` floats apart, the values `behind` the keys.
   Scores are kept in `room`, a multiple of LANES of them. */
INLINE void attend(const float *query, const float *key, ptrdiff_t slot, ptrdiff_t behind, const float *mask, int slots,
                   float *room, float *out) {
    vec q[HEAD / LANES], sum[HEAD / LANES] = {{0}}, all = {0};
    for (int i = 0; i < HEAD / LANES; i++) q[i] = load(query + i * LANES) * (1.0f / 8); /* 1 / sqrt(HEAD) */
    float most = -INFINITY;
    for (int s = 0; s < slots; s++) {
        room[s] = -INFINITY;
        if (mask[s] == -INFINITY) continue;
        vec dot = {0};
        for (int i = 0; i < HEAD / LANES; i++) dot += q[i] * load(key + s * slot + i * LANES);
        room[s] = total(dot) + mask[s];
        most = room[s] > most ? room[s] : most;
    }
    for (int s = slots; s % LANES; s++) room[s] = -INFINITY;
    for (int s = 0; s < slots; s += LANES) {
        vec share = exponential(load(room + s) - most);
        keep(room + s, share);
        all += share;
    }
    for (int s = 0; s < slots; s++) {
        if (mask[s] == -INFINITY) continue;
        for (int i = 0; i < HEAD / LANES; i++) sum[i] += room[s] * load(key + s * slot + behind + i * LANES);
    }
    const float whole = 1.0f / total(all);
    for (int i = 0; i < HEAD / LANES; i++) keep(out + i * LANES, sum[i] * whole);
}

/* x += what a branch gives, normed. */
static void join(float *x, const float *branch, int rows, int size, const float *norm, float eps) {
    for (; rows--; x += size, branch += size) {
        const float scale = scale_of(branch, size, eps);
        for (int i = 0; i < size; i += LANES) keep(x + i, load(x + i) + load(branch + i) * scale * load(norm + i));
    }
}

/* SwiGLU, in place: gates and values side by side, [rows, 2 * inner] -> [rows, inner]. */
static void gate(float *x, int rows, int inner) {
    float *out = x;
    for (; rows--; x += 2 * inner, out += inner)
        for (int i = 0; i < inner; i += LANES) keep(out + i, silu(load(x + i)) * load(x + inner + i));
}

typedef struct {
    int32_t sequences, width, slots;         /* width: rows of a sequence; slots: of the cache that are looked at */
    int32_t mask_rows, read, read_mask_rows; /* rows of a sequence in mask, rows, read_mask */
    int64_t first, stride;                   /* slot of the first sequence; slots from one sequence to the next */
    const int64_t *positions, *places;       /* [3, sequences * width]; the slots, of the whole cache, of the rows */
    const float *mask;                       /* [sequences, mask_rows, slots], 0 or -inf: of the first `width` rows */
    const int64_t *rows;                     /* [sequences, read]: the rows that are wanted, rising; NULL: all */
    const float *read_mask;                  /* for them, like mask */
    float **store;                           /* of each layer the whole cache, [slots, 2, shared, HEAD] */
} Call;

/* Rows at once, whose states stay in the caches. */
#define BLOCK 48

/* Keys and values of so many rows go to their places in the cache. room: 2 x BLOCK x a state or a slot. */
static void keep_keys(const Decoder *m, const Layer *layer, const float *x, const float *turns, int count,
                      const int64_t *places, float *cache, float *room) {
    const int hidden = layer->query.length, slot = layer->key_value.width;
    float *kept = room + BLOCK * hidden;
    norm_rows(x, count, hidden, layer->before_attention, m->eps, room);
    linear(room, count, &layer->key_value, kept);
    for (int r = 0; r < count; r++, kept += slot) {
        rotate(kept, m->shared, turns + r * HEAD);
        memcpy(cache + places[r] * slot, kept, 4 * (size_t)slot);
    }
}

/* The branches of a layer for so many rows x, whose queries have looked around. room: BLOCK x a state and the inner. */
static void branch(const Decoder *m, const Layer *layer, float *x, const float *attended, int count, float *room) {
    const int hidden = layer->query.length;
    float *inner = room + BLOCK * hidden;
    linear(attended, count, &layer->out, room);
    join(x, room, count, hidden, layer->behind_attention, m->eps);
    norm_rows(x, count, hidden, layer->before_mlp, m->eps, room);
    linear(room, count, &layer->gate_up, inner);
    gate(inner, count, layer->down.length);
    linear(inner, count, &layer->down, room);
    join(x, room, count, hidden, layer->behind_mlp, m->eps);
}

/* x [sequences * width, hidden] -> the states of all rows, or of those that are read, at the front of x.
   room: HEAD floats a row, the slots in whole vectors, and BLOCK times two states, the queries and the widest inner. */
void decode(const Decoder *m, const Call *call, float *x, float *room) {
    const int hidden = m->layers->query.length, width = m->layers->query.width, slot = m->layers->key_value.width;
    const int count = call->sequences * call->width;
    float *turns = room, *scores = turns + (size_t)count * HEAD;
    float *queries = scores + (call->slots + LANES - 1) / LANES * LANES, *rest = queries + BLOCK * width;
    for (int r = 0; r < count; r++)
        for (int i = 0; i < HEAD / 2; i++) {
            const float angle = call->positions[(size_t)m->axis[i] * count + r] * m->frequency[i];
            turns[(size_t)r * HEAD + 2 * i] = cosf(angle);
            turns[(size_t)r * HEAD + 2 * i + 1] = sinf(angle);
        }
    for (int l = 0; l < m->depth; l++) {
        const Layer *layer = m->layers + l;
        for (int r = 0; r < count; r += BLOCK)
            keep_keys(m, layer, x + (size_t)r * hidden, turns + (size_t)r * HEAD, count - r < BLOCK ? count - r : BLOCK,
                      call->places + r, call->store[l], rest);
        /* The last layer works for the rows that are read: they move to the front, behind no row that is still to move. */
        const int64_t *rows = l == m->depth - 1 ? call->rows : 0;
        const float *mask = rows ? call->read_mask : call->mask;
        const int wanted = rows ? call->read : call->width, mask_rows = rows ? call->read_mask_rows : call->mask_rows;
        for (int begin = 0; begin < call->sequences * wanted; begin += BLOCK) {
            const int left = call->sequences * wanted - begin, some = left < BLOCK ? left : BLOCK;
            float *states = x + (size_t)begin * hidden;
            if (rows)
                for (int r = 0; r < some; r++)
                    memmove(states + r * hidden, x + ((begin + r) / wanted * call->width + rows[begin + r]) * hidden,
                            4 * (size_t)hidden);
            norm_rows(states, some, hidden, layer->before_attention, m->eps, rest);
            linear(rest, some, &layer->query, queries);
            for (int r = 0; r < some; r++) {
                const int sequence = (begin + r) / wanted, place = (begin + r) % wanted;
                const int64_t row = sequence * call->width + (rows ? rows[begin + r] : place);
                const float *keys = call->store[l] + (call->first + sequence * call->stride) * slot;
                const float *seen = mask + ((size_t)sequence * mask_rows + place) * call->slots;
                float *query = queries + r * width;
                rotate(query, m->heads, turns + row * HEAD);
                for (int h = 0; h < m->heads; h++, query += HEAD)
                    attend(query, keys + h / (m->heads / m->shared) * HEAD, slot, slot / 2, seen, call->slots, scores,
                           query);
            }
            branch(m, layer, states, queries, some, rest);
        }
    }
    norm_rows(x, call->sequences * (call->rows ? call->read : call->width), hidden, m->norm, m->eps, x);
}

/* --- the output head ---------------------------------------------------------------------------------------------- */

/* What each row's state chooses among the words, the first of equals, and with what probability. hints: a word of each
   row, or less than 0, that has a bonus; NULL: none. room: BLOCK x the words. */
void choose(const float *x, int count, const Matrix *head, const int64_t *hints, float bonus, int64_t *choices,
            float *certainties, float *room) {
    const int words = head->width;
    for (int begin = 0; begin < count; begin += BLOCK) {
        const int some = count - begin < BLOCK ? count - begin : BLOCK;
        linear(x + (size_t)begin * head->length, some, head, room);
        for (int r = begin; r < begin + some; r++) {
            float *scores = room + (size_t)(r - begin) * words;
            if (hints && hints[r] >= 0) scores[hints[r]] += bonus;
            vec highest = load(scores), sum = {0};
            for (int i = LANES; i < words; i += LANES) highest = chosen(load(scores + i) > highest, load(scores + i), highest);
            float most = highest[0];
            for (int i = 1; i < LANES; i++) most = highest[i] > most ? highest[i] : most;
            for (int i = 0; i < words; i += LANES) sum += exponential(load(scores + i) - most);
            int first = 0;
            while (first < words - 1 && scores[first] != most) first++;
            choices[r] = first;
            certainties[r] = 1 / total(sum);
        }
    }
}

#pragma clang diagnostic ignored "-Wpsabi"
#define LAZY static inline __attribute__((always_inline))
#define LAZY_VECTOR(type) type __attribute__((ext_vector_type(LAZY_LANES)))
typedef long long int64;
typedef int int32;
typedef short int16;
typedef signed char int8;
typedef unsigned char uint8;
typedef LAZY_VECTOR(float) v_float;
typedef LAZY_VECTOR(double) v_double;
typedef LAZY_VECTOR(int64) v_int64;
typedef LAZY_VECTOR(int32) v_int32;
typedef LAZY_VECTOR(int16) v_int16;
typedef LAZY_VECTOR(int8) v_int8;
typedef LAZY_VECTOR(uint8) v_uint8;
typedef LAZY_VECTOR(unsigned short) v_uint16;
typedef LAZY_VECTOR(unsigned long long) v_uint64;
typedef LAZY_VECTOR(unsigned) v_bool;
LAZY v_float lazy_add(v_float a, v_float b) { return a + b; }
LAZY v_int64 lazy_add(v_int64 a, v_int64 b) { return a + b; }
LAZY v_bool lazy_mul(v_bool a, v_bool b) { return a & b; }
LAZY v_bool lazy_min(v_bool a, v_bool b) { return a & b; }
LAZY v_bool lazy_and(v_bool a, v_bool b) { return a & b; }
LAZY v_float lazy_cast_bfloat16(v_float x) {
  auto u = __builtin_bit_cast(v_bool, x);
  u = (u + 0x7fffu + ((u >> 16) & 1u)) & 0xffff0000u;
  return x != x ? (v_float)(__builtin_nanf("")) : __builtin_bit_cast(v_float, u);
}
LAZY v_float lazy_cast_float(v_float x) { return __builtin_convertvector(x, v_float); }
LAZY v_bool lazy_equal(v_int64 a, v_int64 b) {
  return (v_bool)__builtin_convertvector(a == b, v_int32);
}
LAZY v_float lazy_fma(v_float a, v_float b, v_float c) { return __builtin_elementwise_fma(a, b, c); }
LAZY v_float lazy_scale(v_float p, v_float shifted) {
#if LAZY_LANES == 16
  return __builtin_ia32_scalefps512_mask(p, shifted - 0x1.8p23f, p, 0xffff, 4);
#else
  v_int32 n = (v_int32)shifted - 0x4b400000, half = n >> 1;
  return p * (v_float)((half + 127) << 23) * (v_float)((n - half + 127) << 23);
#endif
}
LAZY v_float lazy_exp(v_float x) {
  x = 89.0f < x ? (v_float)(89.0f) : x;
  x = -104.0f > x ? (v_float)(-104.0f) : x;
  v_float shifted = lazy_fma(x, 0x1.715476p+0f, 0x1.8p23f);
  v_float n = shifted - 0x1.8p23f;
  v_float r = lazy_fma(n, -0x1.62e4p-1f, x);
  r = lazy_fma(n, -0x1.7f7d1cp-20f, r);
  v_float q = lazy_fma(r, 0x1.6a5198p-10f, 0x1.12397cp-7f);
  q = lazy_fma(q, r, 0x1.5558acp-5f);
  q = lazy_fma(q, r, 0x1.555492p-3f);
  q = lazy_fma(q, r, 0x1.fffffcp-2f);
  v_float p = r + 1.0f, lost = r - (p - 1.0f);
  return lazy_scale(p + lazy_fma(q, r * r, lost), shifted);
}
LAZY float lazy_get_float(const float* p) { return *p; }
LAZY int64 lazy_get_int64(const int64* p) { return *p; }
#define LAZY_SHUFFLE(...) __builtin_shufflevector(x, x, __VA_ARGS__)
#if LAZY_LANES == 16
#define LAZY_FOLD(combine)                                                                        \
  x = combine(x, LAZY_SHUFFLE(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));             \
  x = combine(x, LAZY_SHUFFLE(4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));             \
  x = combine(x, LAZY_SHUFFLE(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));             \
  x = combine(x, LAZY_SHUFFLE(1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14));             \
  return x[0];
#elif LAZY_LANES == 8
#define LAZY_FOLD(combine)                              \
  x = combine(x, LAZY_SHUFFLE(4, 5, 6, 7, 0, 1, 2, 3)); \
  x = combine(x, LAZY_SHUFFLE(2, 3, 0, 1, 6, 7, 4, 5)); \
  x = combine(x, LAZY_SHUFFLE(1, 0, 3, 2, 5, 4, 7, 6)); \
  return x[0];
#elif LAZY_LANES == 4
#define LAZY_FOLD(combine)                  \
  x = combine(x, LAZY_SHUFFLE(2, 3, 0, 1)); \
  x = combine(x, LAZY_SHUFFLE(1, 0, 3, 2)); \
  return x[0];
#else
#define LAZY_FOLD(combine) return x[0];
#endif
LAZY float lazy_hsum(v_float x) { LAZY_FOLD(lazy_add) }
#if LAZY_LANES == 16
#define LAZY_LANE_NUMBERS {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
#elif LAZY_LANES == 8
#define LAZY_LANE_NUMBERS {0, 1, 2, 3, 4, 5, 6, 7}
#elif LAZY_LANES == 4
#define LAZY_LANE_NUMBERS {0, 1, 2, 3}
#else
#define LAZY_LANE_NUMBERS {0}
#endif
LAZY v_int64 lazy_iota() { return v_int64 LAZY_LANE_NUMBERS; }
LAZY v_bool lazy_is_nan(v_float a) { return (v_bool)__builtin_convertvector(a != a, v_int32); }
LAZY v_bool lazy_lanes_below(int n) { return (v_bool)(v_int32 LAZY_LANE_NUMBERS < n); }
LAZY v_float lazy_float_of(v_int32 raw) { return (v_float)raw; }
LAZY v_int32 lazy_raw_of_float(v_float x) { return (v_int32)x; }
#if LAZY_LANES == 16
typedef unsigned short lazy_lanes;
LAZY lazy_lanes lazy_first(int n) { return (1u << n) - 1; }
LAZY lazy_lanes lazy_where(v_bool m) { return __builtin_ia32_cvtd2mask512((v_int32)m); }
#else
typedef v_bool lazy_lanes;
LAZY lazy_lanes lazy_first(int n) { return lazy_lanes_below(n); }
LAZY lazy_lanes lazy_where(v_bool m) { return m; }
#endif
#if LAZY_LANES == 16
typedef int64 lazy_8_int64 __attribute__((ext_vector_type(8)));
typedef int lazy_8_int32 __attribute__((ext_vector_type(8)));
#define LAZY_LOW(v) __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7)
#define LAZY_HIGH(v) __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15)
#define LAZY_JOIN(a, b) \
  __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#elif LAZY_LANES == 8
typedef int64 lazy_4_int64 __attribute__((ext_vector_type(4)));
typedef int lazy_4_int32 __attribute__((ext_vector_type(4)));
#define LAZY_LOW(v) __builtin_shufflevector(v, v, 0, 1, 2, 3)
#define LAZY_HIGH(v) __builtin_shufflevector(v, v, 4, 5, 6, 7)
#define LAZY_JOIN(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7)
#endif
typedef v_int32 v_int32_unaligned __attribute__((aligned(1)));
LAZY v_int32 lazy_raw4(const void* p) { return *(const v_int32_unaligned*)p; }
LAZY void lazy_set_raw4(void* p, v_int32 v) { *(v_int32_unaligned*)p = v; }
LAZY v_float lazy_load_float(const float* p) { return lazy_float_of(lazy_raw4(p)); }
#if LAZY_LANES == 16
LAZY v_int32 lazy_raw4(const void* p, lazy_lanes m) {
  return __builtin_ia32_loaddqusi512_mask((const int*)p, v_int32{}, m);
}
LAZY void lazy_set_raw4(void* p, v_int32 v, lazy_lanes m) {
  __builtin_ia32_storedqusi512_mask((int*)p, v, m);
}
#elif LAZY_LANES == 8 && defined(__AVX2__)
LAZY v_int32 lazy_raw4(const void* p, lazy_lanes m) {
  return __builtin_ia32_maskloadd256((const v_int32*)p, (v_int32)m);
}
LAZY void lazy_set_raw4(void* p, v_int32 v, lazy_lanes m) {
  __builtin_ia32_maskstored256((v_int32*)p, (v_int32)m, v);
}
#else
LAZY v_int32 lazy_raw4(const void* p, lazy_lanes m) {
  v_int32 v = {};
  for (int i = 0; i < LAZY_LANES; ++i)
    if (m[i]) v[i] = ((const int32*)p)[i];
  return v;
}
LAZY void lazy_set_raw4(void* p, v_int32 v, lazy_lanes m) {
  for (int i = 0; i < LAZY_LANES; ++i)
    if (m[i]) ((int32*)p)[i] = v[i];
}
#endif
LAZY v_float lazy_load_float(const float* p, int n) {
  return lazy_float_of(lazy_raw4(p, lazy_first(n)));
}
LAZY float lazy_mul(float a, float b) { return a * b; }
LAZY v_float lazy_mul(v_float a, v_float b) { return a * b; }
LAZY v_int64 lazy_mul(v_int64 a, v_int64 b) { return a * b; }
LAZY bool lazy_not_equal(int64 a, int64 b) { return a != b; }
LAZY void lazy_prefetch(const void* p) { __builtin_prefetch(p); }
LAZY v_float lazy_select(v_bool m, v_float a, v_float b) {
  return __builtin_convertvector((v_int32)m, v_int32) ? a : b;
}
LAZY v_bool lazy_splat_bool(bool x) { return (v_bool)(x ? ~0u : 0u); }
LAZY v_float lazy_splat_float(float x) { return (v_float)(x); }
LAZY v_int64 lazy_splat_int64(int64 x) { return (v_int64)(x); }
LAZY void lazy_store_float(float* p, v_float x) { lazy_set_raw4(p, lazy_raw_of_float(x)); }
LAZY void lazy_store_float(float* p, v_float x, int n) {
  lazy_set_raw4(p, lazy_raw_of_float(x), lazy_first(n));
}
LAZY v_float lazy_sub(v_float a, v_float b) { return a - b; }
extern "C" void kernel(void* const* pointers, const int64* sizes, const double* numbers, int64 begin, int64 end) {
  const int64* __restrict const p_in0 = (const int64*)pointers[0];
  const float* __restrict const p_in1 = (const float*)pointers[1];
  const float* __restrict const p_in2 = (const float*)pointers[2];
  const float* __restrict const p_in3 = (const float*)pointers[3];
  const float* __restrict const p_in4 = (const float*)pointers[4];
  const float* __restrict const p_in5 = (const float*)pointers[5];
  const float* __restrict const p_in6 = (const float*)pointers[6];
  float* __restrict const p_out7 = (float*)pointers[7];
  float* __restrict const p_out8 = (float*)pointers[8];
  float* const scratch = (float*)pointers[9];
  const int64 s0 = sizes[0];
  const int64 s1 = sizes[1];
  const int64 s2 = sizes[2];
  const double d0 = numbers[0];
  const double d1 = numbers[1];
  const double d2 = numbers[2];
  if (begin >= end) return;
  const int64 run = (s1 + 127) / 64 * 64;
  float* const m12 = (float*)(scratch + 1 * run);
  float* const m25 = (float*)(scratch + 0 * run);
  const v_int64 v1_integer = lazy_splat_int64((int64)1);
  const v_int64 v3_integer = lazy_splat_int64((int64)0);
  const int64 t7_integer = (int64)s2;
  const v_float v10_in1 = lazy_splat_float(lazy_get_float(p_in1));
  const v_float v11_number = lazy_splat_float((float)d0);
  const v_float v20_number = lazy_splat_float((float)d1);
  const float t27_number = (float)d2;
  const int64 ahead = s1 <= 65536 ? -1 : 0;
  for (int64 unit = begin; unit < end; ++unit) {
    const int64 k0 = unit;
    const int64* const q0_in0 = p_in0 + k0;
    const int64 t5_in0 = lazy_get_int64(q0_in0);
    const v_int64 v5_in0 = lazy_splat_int64(t5_in0);
    const v_bool v8_not_equal = lazy_splat_bool(lazy_not_equal(t5_in0, t7_integer));
    const float* const q1_in5 = p_in5 + k0;
    const v_float v31_in5 = lazy_splat_float(lazy_get_float(q1_in5));
    const float* const q2_in6 = p_in6 + k0;
    const v_float v33_in6 = lazy_splat_float(lazy_get_float(q2_in6));
    const float* const q3_in2 = p_in2 + k0 * s1;
    const float* const q4_in4 = p_in4 + k0 * s1;
    float* const q5_out7 = p_out7 + k0 * s1;
    float* const q6_out8 = p_out8 + k0 * s1;
    v_float c15 = lazy_splat_float((float)0);
    v_float e15 = lazy_splat_float((float)0);
    for (int64 part = 0; part < s1; part += 1024) {
      const int64 part_last = part + 1024 < s1 ? part + 1024 : s1;
      v_float a15 = lazy_splat_float((float)0);
      for (int64 i = part; i < part_last; i += 16) {
        const int n = part_last - i < 16 ? part_last - i : 16;
        lazy_prefetch(q3_in2 + (i & ahead));
        lazy_prefetch(q4_in4 + (i & ahead));
        const v_int64 t0_index = lazy_add(lazy_splat_int64(i), lazy_iota());
        const v_int64 t2_mul = lazy_mul(t0_index, v1_integer);
        const v_int64 t4_add = lazy_add(t2_mul, v3_integer);
        const v_bool t6_equal = lazy_equal(t4_add, v5_in0);
        const v_bool t9_and = lazy_and(t6_equal, v8_not_equal);
        const v_float t12_select = lazy_select(t9_and, v10_in1, v11_number);
        lazy_store_float(m12 + i, t12_select);
        a15 = lazy_add(a15, lazy_select(lazy_lanes_below(n), t12_select, lazy_splat_float((float)0)));
      }
      const v_float b15 = a15;
      const v_float n15 = lazy_add(c15, b15);
      const v_float z15 = lazy_sub(n15, c15);
      e15 = lazy_add(e15, lazy_add(lazy_sub(c15, lazy_sub(n15, z15)), lazy_sub(b15, z15)));
      c15 = n15;
    }
    const v_float v15_reduce_sum = lazy_splat_float(lazy_hsum(lazy_select(lazy_is_nan(e15), c15, lazy_add(c15, e15))));
    v_float c26 = lazy_splat_float((float)0);
    v_float e26 = lazy_splat_float((float)0);
    v_float c36 = lazy_splat_float((float)0);
    v_float e36 = lazy_splat_float((float)0);
    for (int64 part = 0; part < s1; part += 1024) {
      const int64 part_last = part + 1024 < s1 ? part + 1024 : s1;
      v_float a26 = lazy_splat_float((float)0);
      v_float a36 = lazy_splat_float((float)0);
      for (int64 i = part; i < part_last; i += 16) {
        const int n = part_last - i < 16 ? part_last - i : 16;
        const v_float t12_select = lazy_load_float(m12 + i);
        const v_float t13_in2 = lazy_load_float(q3_in2 + i, n);
        const v_float t14_exp = lazy_exp(t13_in2);
        const v_float t16_mul = lazy_mul(t14_exp, v15_reduce_sum);
        const v_float t17_sub = lazy_sub(t12_select, t16_mul);
        const v_float t18_cast = lazy_cast_bfloat16(t17_sub);
        const v_float t19_cast = lazy_cast_float(t18_cast);
        const v_float t21_mul = lazy_mul(t19_cast, v20_number);
        const v_float t22_cast = lazy_cast_bfloat16(t21_mul);
        const v_float t23_cast = lazy_cast_float(t22_cast);
        const v_float t24_in3 = lazy_load_float(p_in3 + i, n);
        const v_float t25_mul = lazy_mul(t23_cast, t24_in3);
        const v_float t30_in4 = lazy_load_float(q4_in4 + i, n);
        const v_float t32_sub = lazy_sub(t30_in4, v31_in5);
        const v_float t34_mul = lazy_mul(t32_sub, v33_in6);
        const v_float t35_mul = lazy_mul(t25_mul, t34_mul);
        const v_float t41_mul = lazy_mul(t23_cast, t34_mul);
        lazy_store_float(m25 + i, t25_mul);
        a26 = lazy_add(a26, lazy_select(lazy_lanes_below(n), t25_mul, lazy_splat_float((float)0)));
        a36 = lazy_add(a36, lazy_select(lazy_lanes_below(n), t35_mul, lazy_splat_float((float)0)));
        lazy_store_float(q6_out8 + i, t41_mul, n);
      }
      const v_float b26 = a26;
      const v_float n26 = lazy_add(c26, b26);
      const v_float z26 = lazy_sub(n26, c26);
      e26 = lazy_add(e26, lazy_add(lazy_sub(c26, lazy_sub(n26, z26)), lazy_sub(b26, z26)));
      c26 = n26;
      const v_float b36 = a36;
      const v_float n36 = lazy_add(c36, b36);
      const v_float z36 = lazy_sub(n36, c36);
      e36 = lazy_add(e36, lazy_add(lazy_sub(c36, lazy_sub(n36, z36)), lazy_sub(b36, z36)));
      c36 = n36;
    }
    const float t26_reduce_sum = lazy_hsum(lazy_select(lazy_is_nan(e26), c26, lazy_add(c26, e26)));
    const float t36_reduce_sum = lazy_hsum(lazy_select(lazy_is_nan(e36), c36, lazy_add(c36, e36)));
    const v_float v28_mul = lazy_splat_float(lazy_mul(t26_reduce_sum, t27_number));
    const v_float v37_mul = lazy_splat_float(lazy_mul(t36_reduce_sum, t27_number));
    for (int64 i = 0; i < s1; i += 16) {
      const int n = s1 - i < 16 ? s1 - i : 16;
      const v_float t25_mul = lazy_load_float(m25 + i);
      const v_float t29_sub = lazy_sub(t25_mul, v28_mul);
      const v_float t30_in4 = lazy_load_float(q4_in4 + i, n);
      const v_float t32_sub = lazy_sub(t30_in4, v31_in5);
      const v_float t34_mul = lazy_mul(t32_sub, v33_in6);
      const v_float t38_mul = lazy_mul(t34_mul, v37_mul);
      const v_float t39_sub = lazy_sub(t29_sub, t38_mul);
      const v_float t40_mul = lazy_mul(t39_sub, v33_in6);
      lazy_store_float(q5_out7 + i, t40_mul, n);
    }
  }
}

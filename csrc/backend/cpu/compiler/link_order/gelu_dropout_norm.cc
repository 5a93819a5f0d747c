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
LAZY float lazy_add(float a, float b) { return a + b; }
LAZY v_float lazy_add(v_float a, v_float b) { return a + b; }
LAZY v_int64 lazy_add(v_int64 a, v_int64 b) { return a + b; }
LAZY v_float lazy_cast_bfloat16(v_float x) {
  auto u = __builtin_bit_cast(v_bool, x);
  u = (u + 0x7fffu + ((u >> 16) & 1u)) & 0xffff0000u;
  return x != x ? (v_float)(__builtin_nanf("")) : __builtin_bit_cast(v_float, u);
}
LAZY v_float lazy_cast_float(v_bool m) { return __builtin_convertvector(m & 1, v_float); }
LAZY v_float lazy_cast_float(v_float x) { return __builtin_convertvector(x, v_float); }
LAZY v_float lazy_div(v_float a, v_float b) { return a / b; }
LAZY v_float lazy_fma(v_float a, v_float b, v_float c) { return __builtin_elementwise_fma(a, b, c); }
LAZY v_float lazy_abs(v_float a) { return __builtin_elementwise_abs(a); }
LAZY v_float lazy_copy_sign(v_float a, v_float b) { return __builtin_elementwise_copysign(a, b); }
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
LAZY v_float lazy_erf(v_float x) {
  v_float z = x * x;
  v_float p = lazy_fma(z, 0x1.4f675ep-14f, -0x1.a60a2ep-11f);
  p = lazy_fma(p, z, 0x1.544a1ap-8f);
  p = lazy_fma(p, z, -0x1.b8011ap-6f);
  p = lazy_fma(p, z, 0x1.ce2d64p-4f);
  p = lazy_fma(p, z, -0x1.81274p-2f);
  p = lazy_fma(p, z, 0x1.06eba8p-3f);
  v_float t = lazy_abs(x);
  t = 4.0f < t ? (v_float)(4.0f) : t;
  v_float q = lazy_fma(t, 0x1.4b5cap-18f, -0x1.7e4f3p-15f);
  q = lazy_fma(q, t, -0x1.a037bcp-15f);
  q = lazy_fma(q, t, 0x1.80124ap-9f);
  q = lazy_fma(q, t, -0x1.737eaap-6f);
  q = lazy_fma(q, t, 0x1.af2806p-4f);
  q = lazy_fma(q, t, 0x1.4570acp-1f);
  q = lazy_fma(q, t, 0x1.074624p-3f);
  v_float large = 1.0f - lazy_exp(lazy_fma(q, -t, -t));
  return t < 0.92f ? lazy_fma(p, x, x) : lazy_copy_sign(large, x);
}
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
LAZY v_float lazy_max(v_float a, v_float b) { return a != a ? a : a > b ? a : b; }
LAZY float lazy_hmax(v_float x) { LAZY_FOLD(lazy_max) }
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
LAZY v_bool lazy_less(v_float a, v_float b) {
  return (v_bool)__builtin_convertvector(a < b, v_int32);
}
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
LAZY float lazy_fma(float a, float b, float c) { return __builtin_elementwise_fma(a, b, c); }
LAZY float lazy_log_tail(float f) {
  float q = lazy_fma(f, 0x1.e9d18ap-4f, -0x1.06c2bap-3f);
  q = lazy_fma(q, f, 0x1.b91efap-4f);
  q = lazy_fma(q, f, -0x1.f3b02cp-4f);
  q = lazy_fma(q, f, 0x1.24eb6ep-3f);
  q = lazy_fma(q, f, -0x1.55978cp-3f);
  q = lazy_fma(q, f, 0x1.9997eep-3f);
  q = lazy_fma(q, f, -0x1.ffff18p-3f);
  q = lazy_fma(q, f, 0x1.555556p-2f);
  float z = f * f;
  return lazy_fma(z * f, q, -0.5f * z);
}
LAZY float lazy_cast_float(int32 x) { return (float)x; }
LAZY float lazy_log_split(float x, float& e) {
  float above = x < 0x1p-126f ? x * 0x1p23f : x;
  int32 i = __builtin_bit_cast(int32, above) - 0x3f2aaaab;
  e = lazy_cast_float(i >> 23) - (x < 0x1p-126f ? (float)(23.0f) : (float)(0.0f));
  return __builtin_bit_cast(float, (i & 0x7fffff) + 0x3f2aaaab) - 1.0f;
}
LAZY float lazy_log_special(float x, float result) {
  result = x < __builtin_inff() ? result : x;
  result = x == 0.0f ? (float)(-__builtin_inff()) : result;
  return x < 0.0f ? (float)(__builtin_nanf("")) : result;
}
LAZY float lazy_log(float x) {
  float e;
  float f = lazy_log_split(x, e);
  float low = lazy_fma(e, -0x1.bd0106p-13f, lazy_log_tail(f));
  return lazy_log_special(x, lazy_fma(e, 0x1.63p-1f, f + low));
}
LAZY float lazy_mul(float a, float b) { return a * b; }
LAZY int64 lazy_mul(int64 a, int64 b) {
  return (int64)((unsigned long long)a * (unsigned long long)b);
}
LAZY v_float lazy_mul(v_float a, v_float b) { return a * b; }
LAZY v_int64 lazy_mul(v_int64 a, v_int64 b) { return a * b; }
LAZY v_int32 lazy_cast_int32(v_int64 x) { return __builtin_convertvector(x, v_int32); }
LAZY v_float lazy_cast_float(v_int32 x) { return __builtin_convertvector(x, v_float); }
LAZY auto lazy_philox_uniform(v_int64 position, v_int64 key) {
  const v_uint64 word = (v_uint64)(0xffffffffull);
  v_uint64 low = (v_uint64)position & word;
  v_uint64 high = ((v_uint64)position >> 32) ^ ((v_uint64)key >> 32);
  v_uint64 round_key = (v_uint64)key & word;
  for (int round = 0; round < 10; ++round) {
    v_uint64 product = low * (v_uint64)(0xD256D193ull);
    low = (product >> 32) ^ round_key ^ high;
    high = product & word;
    round_key = (round_key + (v_uint64)(0x9E3779B9ull)) & word;
  }
  return lazy_cast_float(lazy_cast_int32((v_int64)(low >> 8))) * 0x1p-24f;
}
LAZY void lazy_prefetch(const void* p) { __builtin_prefetch(p); }
LAZY void lazy_put_float(float* p, float x) { *p = x; }
LAZY float lazy_rsqrt(float a) { return 1 / __builtin_elementwise_sqrt(a); }
LAZY v_float lazy_select(v_bool m, v_float a, v_float b) {
  return __builtin_convertvector((v_int32)m, v_int32) ? a : b;
}
LAZY v_float lazy_splat_float(float x) { return (v_float)(x); }
LAZY v_int64 lazy_splat_int64(int64 x) { return (v_int64)(x); }
LAZY void lazy_store_float(float* p, v_float x) { lazy_set_raw4(p, lazy_raw_of_float(x)); }
LAZY void lazy_store_float(float* p, v_float x, int n) {
  lazy_set_raw4(p, lazy_raw_of_float(x), lazy_first(n));
}
LAZY v_float lazy_sub(v_float a, v_float b) { return a - b; }
extern "C" void kernel(void* const* pointers, const int64* sizes, const double* numbers, int64 begin, int64 end) {
  const float* __restrict const p_in0 = (const float*)pointers[0];
  const float* __restrict const p_in1 = (const float*)pointers[1];
  const int64* __restrict const p_in2 = (const int64*)pointers[2];
  const float* __restrict const p_in3 = (const float*)pointers[3];
  float* __restrict const p_out4 = (float*)pointers[4];
  float* __restrict const p_out5 = (float*)pointers[5];
  float* __restrict const p_out6 = (float*)pointers[6];
  float* __restrict const p_out7 = (float*)pointers[7];
  float* __restrict const p_out8 = (float*)pointers[8];
  float* __restrict const p_out9 = (float*)pointers[9];
  float* __restrict const p_out10 = (float*)pointers[10];
  float* const scratch = (float*)pointers[11];
  const int64 s0 = sizes[0];
  const int64 s1 = sizes[1];
  const double d0 = numbers[0];
  const double d1 = numbers[1];
  const double d2 = numbers[2];
  const double d3 = numbers[3];
  const double d4 = numbers[4];
  const double d5 = numbers[5];
  const double d6 = numbers[6];
  if (begin >= end) return;
  const int64 run = (s1 + 127) / 64 * 64;
  float* const m27 = (float*)(scratch + 3 * run);
  float* const m31 = (float*)(scratch + 2 * run);
  float* const m46 = (float*)(scratch + 1 * run);
  float* const m48 = (float*)(scratch + 0 * run);
  const int64 t4_integer = (int64)s1;
  const v_int64 v8_integer = lazy_splat_int64((int64)1);
  const v_int64 v10_integer = lazy_splat_int64((int64)0);
  const v_int64 v12_in2 = lazy_splat_int64(lazy_get_int64(p_in2));
  const v_float v14_number = lazy_splat_float((float)d0);
  const v_float v18_number = lazy_splat_float((float)d1);
  const v_float v20_number = lazy_splat_float((float)d2);
  const v_float v21_number = lazy_splat_float((float)d3);
  const float t29_number = (float)d4;
  const float t35_number = (float)d5;
  const v_float v43_number = lazy_splat_float((float)d6);
  const int64 ahead = s1 <= 65536 ? -1 : 0;
  for (int64 unit = begin; unit < end; ++unit) {
    const int64 k0 = unit;
    const int64 t3_index = k0;
    const v_int64 v5_mul = lazy_splat_int64(lazy_mul(t3_index, t4_integer));
    const float* const q0_in0 = p_in0 + k0 * s1;
    const float* const q1_in1 = p_in1 + k0 * s1;
    float* const q2_out4 = p_out4 + k0 * s1;
    float* const q3_out5 = p_out5 + k0 * s1;
    float* const q4_out6 = p_out6 + k0 * s1;
    float* const q5_out7 = p_out7 + k0;
    float* const q6_out8 = p_out8 + k0;
    float* const q7_out9 = p_out9 + k0 * s1;
    float* const q8_out10 = p_out10 + k0 * s1;
    v_float c28 = lazy_splat_float((float)0);
    v_float e28 = lazy_splat_float((float)0);
    for (int64 part = 0; part < s1; part += 1024) {
      const int64 part_last = part + 1024 < s1 ? part + 1024 : s1;
      v_float a28 = lazy_splat_float((float)0);
      for (int64 i = part; i < part_last; i += 16) {
        const int n = part_last - i < 16 ? part_last - i : 16;
        const v_float t0_in0 = lazy_load_float(q0_in0 + i, n);
        const v_float t1_in1 = lazy_load_float(q1_in1 + i, n);
        const v_float t2_add = lazy_add(t0_in0, t1_in1);
        const v_int64 t6_index = lazy_add(lazy_splat_int64(i), lazy_iota());
        const v_int64 t7_add = lazy_add(v5_mul, t6_index);
        const v_int64 t9_mul = lazy_mul(t7_add, v8_integer);
        const v_int64 t11_add = lazy_add(t9_mul, v10_integer);
        const v_float t13_philox_uniform = lazy_philox_uniform(t11_add, v12_in2);
        const v_bool t15_less = lazy_less(t13_philox_uniform, v14_number);
        const v_float t16_cast = lazy_cast_float(t15_less);
        const v_float t17_div = lazy_div(t16_cast, v14_number);
        const v_float t19_mul = lazy_mul(t2_add, v18_number);
        const v_float t22_mul = lazy_mul(t2_add, v21_number);
        const v_float t23_erf = lazy_erf(t22_mul);
        const v_float t24_add = lazy_add(v20_number, t23_erf);
        const v_float t25_mul = lazy_mul(t19_mul, t24_add);
        const v_float t26_mul = lazy_mul(t25_mul, t17_div);
        const v_float t27_add = lazy_add(t26_mul, t1_in1);
        lazy_store_float(m27 + i, t27_add);
        a28 = lazy_add(a28, lazy_select(lazy_lanes_below(n), t27_add, lazy_splat_float((float)0)));
        lazy_store_float(q2_out4 + i, t2_add, n);
        lazy_store_float(q3_out5 + i, t17_div, n);
        lazy_store_float(q4_out6 + i, t27_add, n);
      }
      const v_float b28 = a28;
      const v_float n28 = lazy_add(c28, b28);
      const v_float z28 = lazy_sub(n28, c28);
      e28 = lazy_add(e28, lazy_add(lazy_sub(c28, lazy_sub(n28, z28)), lazy_sub(b28, z28)));
      c28 = n28;
    }
    const float t28_reduce_sum = lazy_hsum(lazy_select(lazy_is_nan(e28), c28, lazy_add(c28, e28)));
    const float t30_mul = lazy_mul(t28_reduce_sum, t29_number);
    const v_float v30_mul = lazy_splat_float(t30_mul);
    v_float c33_0 = lazy_splat_float((float)0);
    v_float e33_0 = lazy_splat_float((float)0);
    for (int64 part = 0; part < s1; part += 2048) {
      const int64 part_last = part + 2048 < s1 ? part + 2048 : s1;
      v_float a33_0 = lazy_splat_float((float)0);
      v_float a33_1 = lazy_splat_float((float)0);
      {
        int64 i = part;
        for (; i + 32 <= part_last; i += 32) {
          lazy_prefetch(q0_in0 + s1 + (i & ahead));
          lazy_prefetch(q1_in1 + s1 + (i & ahead));
          lazy_prefetch(q0_in0 + s1 + ((i + 16) & ahead));
          lazy_prefetch(q1_in1 + s1 + ((i + 16) & ahead));
          const v_float t27_add_0 = lazy_load_float(m27 + i);
          const v_float t27_add_1 = lazy_load_float(m27 + i + 16);
          const v_float t31_sub_0 = lazy_sub(t27_add_0, v30_mul);
          const v_float t31_sub_1 = lazy_sub(t27_add_1, v30_mul);
          const v_float t32_mul_0 = lazy_mul(t31_sub_0, t31_sub_0);
          const v_float t32_mul_1 = lazy_mul(t31_sub_1, t31_sub_1);
          lazy_store_float(m31 + i, t31_sub_0);
          lazy_store_float(m31 + i + 16, t31_sub_1);
          a33_0 = lazy_add(a33_0, t32_mul_0);
          a33_1 = lazy_add(a33_1, t32_mul_1);
        }
        for (; i < part_last; i += 16) {
          const int n = part_last - i < 16 ? part_last - i : 16;
          lazy_prefetch(q0_in0 + s1 + (i & ahead));
          lazy_prefetch(q1_in1 + s1 + (i & ahead));
          const v_float t27_add = lazy_load_float(m27 + i);
          const v_float t31_sub = lazy_sub(t27_add, v30_mul);
          const v_float t32_mul = lazy_mul(t31_sub, t31_sub);
          lazy_store_float(m31 + i, t31_sub);
          a33_0 = lazy_add(a33_0, lazy_select(lazy_lanes_below(n), t32_mul, lazy_splat_float((float)0)));
        }
      }
      const v_float b33_0 = lazy_add(a33_0, a33_1);
      const v_float n33_0 = lazy_add(c33_0, b33_0);
      const v_float z33_0 = lazy_sub(n33_0, c33_0);
      e33_0 = lazy_add(e33_0, lazy_add(lazy_sub(c33_0, lazy_sub(n33_0, z33_0)), lazy_sub(b33_0, z33_0)));
      c33_0 = n33_0;
    }
    const float t33_reduce_sum = lazy_hsum(lazy_select(lazy_is_nan(e33_0), c33_0, lazy_add(c33_0, e33_0)));
    const float t34_mul = lazy_mul(t33_reduce_sum, t29_number);
    const float t36_add = lazy_add(t34_mul, t35_number);
    const float t37_rsqrt = lazy_rsqrt(t36_add);
    const v_float v37_rsqrt = lazy_splat_float(t37_rsqrt);
    v_float a47 = lazy_splat_float(-(float)__builtin_inff());
    for (int64 i = 0; i < s1; i += 16) {
      const int n = s1 - i < 16 ? s1 - i : 16;
      const v_float t31_sub = lazy_load_float(m31 + i);
      const v_float t38_mul = lazy_mul(t31_sub, v37_rsqrt);
      const v_float t39_in3 = lazy_load_float(p_in3 + i, n);
      const v_float t40_mul = lazy_mul(t38_mul, t39_in3);
      const v_float t41_cast = lazy_cast_bfloat16(t40_mul);
      const v_float t42_cast = lazy_cast_float(t41_cast);
      const v_float t44_mul = lazy_mul(t42_cast, v43_number);
      const v_float t45_cast = lazy_cast_bfloat16(t44_mul);
      const v_float t46_cast = lazy_cast_float(t45_cast);
      lazy_store_float(m46 + i, t46_cast);
      a47 = lazy_max(a47, lazy_select(lazy_lanes_below(n), t46_cast, lazy_splat_float(-(float)__builtin_inff())));
      lazy_store_float(q7_out9 + i, t46_cast, n);
    }
    const v_float v47_reduce_max = lazy_splat_float(lazy_hmax(a47));
    v_float c50 = lazy_splat_float((float)0);
    v_float e50 = lazy_splat_float((float)0);
    for (int64 part = 0; part < s1; part += 1024) {
      const int64 part_last = part + 1024 < s1 ? part + 1024 : s1;
      v_float a50 = lazy_splat_float((float)0);
      for (int64 i = part; i < part_last; i += 16) {
        const int n = part_last - i < 16 ? part_last - i : 16;
        const v_float t46_cast = lazy_load_float(m46 + i);
        const v_float t48_sub = lazy_sub(t46_cast, v47_reduce_max);
        const v_float t49_exp = lazy_exp(t48_sub);
        lazy_store_float(m48 + i, t48_sub);
        a50 = lazy_add(a50, lazy_select(lazy_lanes_below(n), t49_exp, lazy_splat_float((float)0)));
      }
      const v_float b50 = a50;
      const v_float n50 = lazy_add(c50, b50);
      const v_float z50 = lazy_sub(n50, c50);
      e50 = lazy_add(e50, lazy_add(lazy_sub(c50, lazy_sub(n50, z50)), lazy_sub(b50, z50)));
      c50 = n50;
    }
    const float t50_reduce_sum = lazy_hsum(lazy_select(lazy_is_nan(e50), c50, lazy_add(c50, e50)));
    const v_float v51_log = lazy_splat_float(lazy_log(t50_reduce_sum));
    for (int64 i = 0; i < s1; i += 16) {
      const int n = s1 - i < 16 ? s1 - i : 16;
      const v_float t48_sub = lazy_load_float(m48 + i);
      const v_float t52_sub = lazy_sub(t48_sub, v51_log);
      lazy_store_float(q8_out10 + i, t52_sub, n);
    }
    lazy_put_float(q5_out7, t30_mul);
    lazy_put_float(q6_out8, t37_rsqrt);
  }
}

"""How far the elementary functions of kernels are from the true values; the table of
docs/accuracy.md.

Each function is a window of its own on device lazy. Float is compared with eager's double: bit
patterns spread over all of them, and numbers spread over [-20, 20] and [-110, 110]; logarithms
also at every float from 0.5 to 2, and functions of [-1, 1] at numbers spread over that. Double is
compared with mpmath at 40 digits: fewer numbers, spread over [-20, 20]. A unit is one in the last
place of the true value, or of 1 where that is greater and the function has roots that no number
hits. Special values (zeros, denormals, limits, infinities, NaN) are compared with eager's. `--fit`
prints the coefficients of the polynomials in csrc/codegen/prelude/cpu_math_float.inc instead.
"""

from __future__ import annotations

import argparse
import sys

import mpmath
import numpy
import torch

mpmath.mp.dps = 40

FUNCTIONS = (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh "
    "atanh erf erfc erfinv lgamma digamma sigmoid sqrt rsqrt reciprocal pow atan2 hypot"
)
BINARY = ("pow", "atan2", "hypot")
ROOTS = ("lgamma", "digamma")
WITHIN_ONE = ("asin", "acos", "atanh", "erfinv")  # their domain is [-1, 1]
LIMITS = {"pow": 4, "lgamma": 4, "digamma": 4}  # units; others 2
MPMATH = {
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "log": mpmath.ln,
    "log2": lambda x: mpmath.log(x, 2),
    "lgamma": lambda x: mpmath.ln(abs(mpmath.gamma(x))),
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "pow": mpmath.power,
}


def on_device(name: str, *inputs: torch.Tensor) -> numpy.ndarray:
    """What the compiled kernel computes."""
    moved = [x.to("lazy") for x in inputs]
    for _ in range(20):
        before = torch.lazy.metrics()["deferred"]
        result = getattr(torch, name)(*moved)
        torch.lazy.synchronize()
        torch.lazy.wait_for_compiles()
        if torch.lazy.metrics()["deferred"] > before:
            return result.cpu().numpy()
    raise SystemExit(f"{name} is still not compiled after 20 calls")


def float_inputs(name: str, samples: int) -> list[torch.Tensor]:
    random = numpy.random.default_rng(1)

    def numbers() -> torch.Tensor:
        bits = numpy.arange(0, 2**32, 2**32 // samples, dtype=numpy.uint64).astype(numpy.uint32)
        near = random.uniform(-20, 20, samples).astype(numpy.float32)
        far = random.uniform(-110, 110, samples).astype(numpy.float32)
        # All of an octave on both sides of 1, where logarithms change their way.
        octaves = numpy.arange(0x3F000000, 0x40000000, dtype=numpy.uint32).view(numpy.float32)
        if name in WITHIN_ONE:
            near, far = near / 20, far / 110
        parts = [bits.view(numpy.float32), near, far]
        return torch.from_numpy(numpy.concatenate(parts + [octaves] * name.startswith("log")))

    first = numbers()
    if name not in BINARY:
        return [first]
    return [first, numbers()[torch.from_numpy(random.permutation(len(first)))]]


def worst_of_float(name: str, samples: int) -> tuple[float, str]:
    inputs = float_inputs(name, samples)
    got = on_device(name, *inputs).astype(numpy.float64)
    true = getattr(torch, name)(*(x.double() for x in inputs)).numpy()
    limit = 2.0**128  # what infinity counts as: the number after the largest
    both_nan = numpy.isnan(got) & numpy.isnan(true)
    got, true = numpy.clip(got, -limit, limit), numpy.clip(true, -limit, limit)
    least = 1.0 if name in ROOTS else 2.0**-126
    size = numpy.clip(numpy.abs(true), least, numpy.nextafter(limit, 0))
    errors = numpy.abs(got - true) / 2.0 ** (numpy.floor(numpy.log2(size)) - 23)
    errors = numpy.where(both_nan, 0, numpy.nan_to_num(errors, nan=numpy.inf))
    at = int(errors.argmax())
    return float(errors[at]), ", ".join(f"{float(x[at]):.8g}" for x in inputs)


def worst_of_double(name: str, samples: int) -> tuple[float, str]:
    random = numpy.random.default_rng(2)
    inputs = [random.uniform(-20, 20, samples) for _ in range(2 if name in BINARY else 1)]
    if name in ("asin", "acos", "atanh", "erfinv"):
        inputs[0] /= 20
    got = on_device(name, *(torch.from_numpy(x) for x in inputs))
    exact = MPMATH.get(name) or getattr(mpmath, name)
    worst, where = 0.0, ""
    for i in numpy.flatnonzero(~numpy.isnan(got)):
        at = [float(x[i]) for x in inputs]
        true = exact(*(mpmath.mpf(x) for x in at))
        size = max(abs(float(true)), 1.0 if name in ROOTS else 0.0)
        error = float(abs(mpmath.mpf(float(got[i])) - true) / numpy.spacing(size))
        if error > worst:
            worst, where = error, ", ".join(f"{x:.8g}" for x in at)
    return worst, where


def differing_special(name: str) -> str:
    """The first special value whose result is not eager's, nor within the limit of the true one."""
    limits = torch.finfo(torch.float32)
    sizes = [0, 2.0**-149, limits.tiny, limits.eps, 0.5, 1, 1.5, 2, 3, 4, 88.8, 103.9, 128, 170]
    sizes += [1000, 1e9, 1e30, limits.max, float("inf"), float("nan")]
    values = torch.tensor(sizes + [-size for size in sizes])
    pairs = torch.cartesian_prod(values, values).T if name in BINARY else values[None]
    inputs = [x.contiguous() for x in pairs]
    got, eager = torch.from_numpy(on_device(name, *inputs)), getattr(torch, name)(*inputs)
    true = getattr(torch, name)(*(x.double() for x in inputs))
    close = (got - true).abs() <= LIMITS.get(name, 2) * 2.0**-23 * true.abs() + 2.0**-148
    same = (got == eager) & (got.signbit() == eager.signbit()) | (got.isnan() & eager.isnan())
    close &= (got != 0) | (true != 0) | (got.signbit() == true.signbit())
    wrong = ~(same | close | ((got == true.float()) & (got.signbit() == true.signbit())))
    if not wrong.any():
        return "as eager"
    at = int(wrong.nonzero()[0])
    return f"f({', '.join(f'{float(x[at]):g}' for x in inputs)}) = {got[at]}, eager {eager[at]}"


def table(names: list[str], samples: int) -> bool:
    print("| function | float: ulp | at | special values | double: ulp | at |\n|" + "---|" * 6)
    good = True
    for name in names:
        units, where = worst_of_float(name, samples)
        special = differing_special(name)
        double_units, double_where = worst_of_double(name, max(1, samples >> 9))
        print(
            f"| {name} | {units:.2f} | {where} | {special} | {double_units:.2f} | {double_where} |",
            flush=True,
        )
        good &= units <= LIMITS.get(name, 2) and special == "as eager"
    return good


# --- The fit -------------------------------------------------------------------------------------


def exact_first(c: float, index: int) -> float:
    """As `rounded` of a polynomial whose first coefficient a kernel has in two parts."""
    return c if index == 0 else float(numpy.float32(c))


def fit(name, target, weight, degree, low, high, points=1500, rounded=None):
    """Prints c0 ... of the polynomial that minimises max |weight * (p - target)|, all floats
    unless `rounded` says otherwise."""
    fixed, error = coefficients(target, weight, degree, low, high, points, rounded=rounded)
    print(f"{name}: relative error 2^{error:.1f}\n  {[c.hex() for c in fixed]}")


def fit_pieces(name, target, weight, degree, width, count, points=400):
    """Prints as many polynomials in the distance from the middle of a piece as there are pieces of
    this width from 0 on: a line for each degree, and a last one for what c0 is beyond a float."""
    pieces, errors = [], []
    for piece in range(count):
        middle = (piece + 0.5) * width
        shifted = [lambda x, f=f, middle=middle: f(x + middle) for f in (target, weight)]
        fixed, error = coefficients(
            *shifted, degree, -width / 2, width / 2, points, rounded=exact_first
        )
        first = float(numpy.float32(fixed[0]))
        pieces.append([first, *fixed[1:], float(numpy.float32(fixed[0] - first))])
        errors.append(error)
    print(f"{name}: relative error 2^{max(errors):.1f}")
    for line in zip(*pieces, strict=True):
        print(f"  {[c.hex() for c in line]}")


def coefficients(target, weight, degree, low, high, points, rounds=60, rounded=None):
    """By Lawson's reweighted least squares, rounded one by one, the rest fitted again after each;
    and the logarithm of the error."""
    rounded = rounded or (lambda c, _: float(numpy.float32(c)))
    angle = numpy.pi * (numpy.arange(points) + 0.5) / points
    at = (low + high) / 2 + (high - low) / 2 * numpy.cos(angle)
    values = numpy.array([float(target(mpmath.mpf(float(x)))) for x in at])
    scale = numpy.array([float(weight(mpmath.mpf(float(x)))) for x in at])
    basis = at[:, None] ** numpy.arange(degree + 1)
    fixed: list[float] = []
    while len(fixed) <= degree:
        first = len(fixed)
        rest = values - (basis[:, :first] @ numpy.array(fixed) if fixed else 0)
        lawson = numpy.full(points, 1.0 / points)
        for _ in range(rounds):
            rows = (scale * numpy.sqrt(lawson))[:, None]
            free, *_ = numpy.linalg.lstsq(basis[:, first:] * rows, rest * rows[:, 0], rcond=None)
            error = numpy.abs(scale * (basis[:, first:] @ free - rest))
            if error.max() == 0:
                break
            lawson = lawson * error / (lawson * error).sum()
        fixed.append(rounded(float(free[0]), first))
    error = numpy.abs(scale * (basis @ numpy.array(fixed) - values)).max()
    return fixed, numpy.log2(error)


def fit_all() -> None:
    exp, log, tanh, erf, root = mpmath.exp, mpmath.log, mpmath.tanh, mpmath.erf, mpmath.sqrt
    half_ln2 = float(log(2) / 2)
    # exp(r) = 1 + r + r^2 q(r)
    fit("exp", lambda r: (exp(r) - 1 - r) / r**2, lambda r: r**2 / exp(r), 4, -half_ln2, half_ln2)
    # log(1 + f) = f - f^2 / 2 + f^3 q(f)
    log_rest = lambda f: (mpmath.log1p(f) - f + f**2 / 2) / f**3  # noqa: E731
    fit("log", log_rest, lambda f: f**3 / mpmath.log1p(f), 8, -1 / 3, 1 / 3)
    # tanh(x) = x + x z q(z), z = x^2
    tanh_rest, tanh_scale = lambda z: (tanh(root(z)) / root(z) - 1) / z, lambda z: z * root(z)
    fit("tanh", tanh_rest, lambda z: tanh_scale(z) / tanh(root(z)), 5, 1e-12, 0.625**2)
    # sinh(x) = x + x z q(z), z = x^2
    sinh = mpmath.sinh
    sinh_rest = lambda z: (sinh(root(z)) / root(z) - 1) / z  # noqa: E731
    fit("sinh", sinh_rest, lambda z: z * root(z) / sinh(root(z)), 3, 1e-12, 1.0)
    # erf(x) = x + x q(z), z = x^2
    erf_rest, erf_scale = lambda z: erf(root(z)) / root(z) - 1, lambda z: root(z) / erf(root(z))
    fit("erf, small", erf_rest, erf_scale, 6, 1e-12, 0.93**2)
    # erf(x) = 1 - exp(-t - t q(t)); the error of erf from an error d of the exponent is d * erfc
    large_rest, large_scale = lambda t: -log(mpmath.erfc(t)) / t - 1, lambda t: t * mpmath.erfc(t)
    fit("erf, large", large_rest, lambda t: large_scale(t) / erf(t), 7, 0.92, 4.0)
    # erf(t) = t p(u), by pieces whose middles u is counted from
    for degree, width, count in ((5, 0.25, 16), (6, 0.5, 8)):
        name = f"erf, {count} pieces"
        fit_pieces(name, lambda t: erf(t) / t, lambda t: t / erf(t), degree, width, count)
    # erfinv(x) = x p(w - 2) = x q(sqrt(w) - 3), w = -log(1 - x^2); p's c0 as a double
    erfinv_root = lambda w: root(-mpmath.expm1(-w))  # noqa: E731
    erfinv_rest = lambda w: mpmath.erfinv(erfinv_root(w)) / erfinv_root(w)  # noqa: E731
    near = lambda u: erfinv_rest(u + 2)  # noqa: E731
    fit("erfinv, near", near, lambda u: 1 / near(u), 9, -2 + 1e-9, 3.0, 300, exact_first)
    far = lambda u: erfinv_rest((u + 3) ** 2)  # noqa: E731
    fit("erfinv, far", far, lambda u: 1 / far(u), 9, 5**0.5 - 3 - 1e-3, 1.0, 400)
    # 2^r = 1 + r q(r)
    exp2 = lambda r: mpmath.mpf(2) ** r  # noqa: E731
    fit("exp2", lambda r: (exp2(r) - 1) / r, lambda r: r / exp2(r), 5, -0.5, 0.5)
    # sin(r) = r + r z q(z), cos(r) = 1 - z / 2 + z^2 q(z), z = r^2
    sin, cos, quarter = mpmath.sin, mpmath.cos, float(mpmath.pi / 4)
    sin_rest = lambda z: (sin(root(z)) / root(z) - 1) / z  # noqa: E731
    fit("sin", sin_rest, lambda z: z * root(z) / sin(root(z)), 3, 1e-12, quarter**2)
    cos_rest = lambda z: (cos(root(z)) - 1 + z / 2) / z**2  # noqa: E731
    fit("cos", cos_rest, lambda z: z**2 / cos(root(z)), 2, 1e-4, quarter**2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("functions", nargs="*", default=FUNCTIONS.split(), help="all unless given")
    parser.add_argument("--samples", type=int, default=1 << 22, help="of each kind, of float")
    parser.add_argument("--fit", action="store_true", help="derive the polynomials' coefficients")
    args = parser.parse_args()
    if args.fit:
        fit_all()
        return 0
    return 0 if table(args.functions, args.samples) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Order conditions, published digits and measured orders of the composition schemes.

A basic method is Phi_h = exp(h A_1 + h^2 A_2 + h^3 A_3 + ...) with free noncommuting A_k, and exp(h A_1) the exact flow; its
adjoint has the signs of even k changed, and a symmetric method has odd k only. A composition has order p if its word
coefficients up to weight p are those of exp(h A_1): 1/n! for A_1^n, and 0 for every word with another letter.
"""

from fractions import Fraction
from functools import cache
from math import factorial, prod

import mpmath
import numpy as np
import pytest
from mpmath import mp

from dalembert import schemes
from dalembert.errors import InputError
from dalembert.methods.schemes import _MOST_EFFICIENT

HOLDS, FAILS = mp.mpf(10) ** -95, 1e-9
SYMMETRIC_LETTERS = (1, 3, 5, 7, 9, 11)
ALL_LETTERS = tuple(range(1, 8))

FOR_SYMMETRIC_METHODS = [
    "strang",
    "triple-jump-4",
    "triple-jump-6",
    "triple-jump-8",
    "triple-jump-10",
    "suzuki-4",
    "suzuki-6",
    "suzuki-8",
    "mclachlan-4",
    "yoshida-6",
    "kahan-li-6",
    "kahan-li-8",
    "kahan-li-10",
    "suzuki-umeno-8",
    "sofroniou-spaletta-6",
    "sofroniou-spaletta-8",
    "sofroniou-spaletta-10",
]
ALTERNATING = ["strang", "suzuki-4", "mclachlan-4", "yoshida-6", "kahan-li-6", "blanes-moan-4", "blanes-moan-6"]
ALL = [*FOR_SYMMETRIC_METHODS, "blanes-moan-4", "blanes-moan-6"]


@cache
def words(letters, largest_weight):
    by_weight = {0: [()]}
    for n in range(1, largest_weight + 1):
        by_weight[n] = [(k, *word) for k in letters if k <= n for word in by_weight[n - k]]
    return [word for n in range(1, largest_weight + 1) for word in by_weight[n]]


def exponential(x, adjoint, letters, largest_weight):
    """Word coefficients of exp(x A_1 + x^2 A_2 + ...), or of exp(x A_1 - x^2 A_2 + ...) for the adjoint."""
    sign = {k: -1 if adjoint and k % 2 == 0 else 1 for k in letters}
    power = {k: x**k * sign[k] for k in letters}
    return {w: prod((power[k] for k in w), start=mp.one) / factorial(len(w)) for w in [(), *words(letters, largest_weight)]}


def defects_by_weight(substeps, letters, largest_weight):
    """The largest deviation of the word coefficients from those of the exact flow, weight by weight."""
    with mpmath.workdps(110):
        flow = exponential(mp.zero, False, letters, largest_weight)
        factors = {}
        for fraction, adjoint in substeps:
            if (fraction, adjoint) not in factors:
                x = mp.mpf(fraction.numerator) / fraction.denominator
                factors[fraction, adjoint] = exponential(x, adjoint, letters, largest_weight)
            factor = factors[fraction, adjoint]
            flow = {w: mp.fdot((flow[w[:i]], factor[w[i:]]) for i in range(len(w) + 1)) for w in flow}
        defects = [mp.zero] * (largest_weight + 1)
        for w in words(letters, largest_weight):
            exact = mp.one / factorial(len(w)) if set(w) == {1} else mp.zero
            defects[sum(w)] = max(defects[sum(w)], abs(flow[w] - exact))
        return defects


@cache
def defects_of(name):
    scheme = schemes.scheme(name)
    return defects_by_weight(scheme.substeps(symmetric=True), SYMMETRIC_LETTERS, scheme.order + 1)


@pytest.mark.parametrize("name", FOR_SYMMETRIC_METHODS)
def test_order_conditions_for_a_symmetric_basic_method_hold_up_to_the_order_and_not_beyond(name):
    order = schemes.scheme(name).order
    assert max(defects_of(name)[: order + 1]) < HOLDS
    assert defects_of(name)[order + 1] > FAILS


@pytest.mark.parametrize("name", ALTERNATING)
def test_order_conditions_for_a_first_order_method_and_its_adjoint(name):
    scheme = schemes.scheme(name)
    defects = defects_by_weight(scheme.substeps(symmetric=False), ALL_LETTERS, scheme.order + 1)
    assert max(defects[: scheme.order + 1]) < HOLDS
    assert defects[scheme.order + 1] > FAILS
    exchanged = [(fraction, not adjoint) for fraction, adjoint in scheme.substeps(symmetric=False)]
    assert max(defects_by_weight(exchanged, ALL_LETTERS, scheme.order)) < HOLDS


@pytest.mark.parametrize("make", [schemes.triple_jump, schemes.suzuki])
def test_recursions_start_from_a_basic_method_of_order_4(make):
    for order, stages in ((6, 1), (8, 2)):
        scheme = make(order, basic_order=4)
        assert len(scheme.fractions) == (3 if make is schemes.triple_jump else 5) ** stages
        defects = defects_by_weight(scheme.substeps(symmetric=True), (1, 5, 7, 9), order + 1)
        assert max(defects[: order + 1]) < HOLDS and defects[order + 1] > FAILS


@pytest.mark.parametrize("name", ALL)
def test_schemes_are_symmetric_and_consistent(name):
    scheme = schemes.scheme(name)
    assert scheme.name == name and scheme.reference
    assert sum(scheme.fractions) == 1 and scheme.fractions == scheme.fractions[::-1]
    assert scheme.gammas == scheme.gammas[::-1] and abs(sum(scheme.gammas) - 1) < 1e-14
    halves = scheme.substeps(symmetric=False)
    assert sum(x for x, _ in halves) == 1 and [adjoint for _, adjoint in halves] == [False, True] * (len(halves) // 2)


@pytest.mark.parametrize(("make", "outer"), [(schemes.triple_jump, 2), (schemes.suzuki, 4)])
def test_recursive_schemes_are_rounded_once(make, outer):
    with mpmath.workdps(150):
        expected = [mp.one]
        for p in (4, 6, 8):
            long = 1 / (outer - mp.root(outer, p - 1))
            steps = [long] * (outer // 2) + [1 - outer * long] + [long] * (outer // 2)
            expected = [x * y for x in steps for y in expected]
            assert list(make(p).gammas) == [float(x) for x in expected]


PUBLISHED = {  # as printed: first half and middle
    "mclachlan-4": "0.28 0.62546642846767004501",
    "yoshida-6": "0.78451361047755726381949763 0.23557321335935813368479318 -1.17767998417887100694641568 "
    "1.31518632068391121888424973",
    "kahan-li-6": "0.39216144400731413927925056 0.33259913678935943859974864 -0.70624617255763935980996482 "
    "0.08221359629355080023149045 0.79854399093482996339895035",
    "suzuki-umeno-8": "0.74167036435061295344822780 -0.40910082580003159399730010 0.19075471029623837995387626 "
    "-0.57386247111608226665638773 0.29906418130365592384446354 0.33462491824529818378495798 0.31529309239676659663205666 "
    "-0.79688793935291635401978884",
    "kahan-li-8": "0.13020248308889008087881763 0.56116298177510838456196441 -0.38947496264484728640807860 "
    "0.15884190655515560089621075 -0.39590389413323757733623154 0.18453964097831570709183254 0.25837438768632204729397911 "
    "0.29501172360931029887096624 -0.60550853383003451169892108",
    "kahan-li-10": "-0.48159895600253002870 0.0036303931544595926879 0.50180317558723140279 0.28298402624506254868 "
    "0.80702967895372223806 -0.026090580538592205447 -0.87286590146318071547 -0.52373568062510581643 0.44521844299952789252 "
    "0.18612289547097907887 0.23137327866438360633 -0.52191036590418628905 0.74866113714499296793 0.066736511890604057532 "
    "-0.80360324375670830316 0.91249037635867994571",
    "sofroniou-spaletta-6": "0.13861930854051695245808013042625 0.13346562851074760407046858832209 "
    "0.13070531011449225190542755785015 0.12961893756907034772505366537091 -0.35000324893920896516170830911323 "
    "0.11805530653002387170273438954049 0.39907751534871587459988795520665",
    "sofroniou-spaletta-8": "0.10647728984550031823931967854896 0.10837408645835726397433410591546 "
    "0.35337821052654342419534541324080 -0.23341414023165082198780281128319 -0.24445266791528841269462171413216 "
    "0.11317848435755633314700952515599 0.11892905625000350062692972283951 0.12603912321825988140305670268365 "
    "0.12581718736176041804392391641587 0.11699135019217642180722881433533 -0.38263596012643665350944670744040",
    "sofroniou-spaletta-10": "0.078795722521686419263907679337684 0.31309610341510852776481247192647 "
    "0.027918383235078066109520273275299 -0.22959284159390709415121339679655 0.13096206107716486317465685927961 "
    "-0.26973340565451071434460973222411 0.074973343155891435666137105641410 0.11199342399981020488957508073640 "
    "0.36613344954622675119314812353150 -0.39910563013603589787862981058340 0.10308739852747107731580277001372 "
    "0.41143087395589023782070411897608 -0.0048663605831352617621956593099771 -0.39203335370863990644808193642610 "
    "0.051942502962449647037182904015976 0.050665090759924496335874344156866 0.049674370639729879054568800279461 "
    "0.049317735759594537917680008339338",
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_digits_agree_to_the_last_one_printed(name):
    for number, used in zip(PUBLISHED[name].split(), schemes.scheme(name).fractions, strict=False):
        unit = Fraction(1, 10 ** len(number.partition(".")[2]))
        assert abs(Fraction(number) - used) <= unit


@pytest.mark.parametrize(
    ("order", "printed", "units"),
    [
        (
            4,
            "0.0792036964311957 0.209515106613362 0.353172906049774 -0.143851773179818 -0.0420650803577195 0.434336666566456",
            0.6,
        ),
        (
            6,  # the printed numbers satisfy the order conditions to 1e-16 only
            "0.0502627644003922 0.148816447901042 0.413514300428344 -0.132385865767784 0.0450798897943977 0.067307604692185 "
            "-0.188054853819569 0.432666402578175 0.541960678450780 -0.016404589403618",
            3,
        ),
    ],
)
def test_published_splitting_coefficients_of_blanes_and_moan(order, printed, units):
    fractions = [Fraction(0), *schemes.blanes_moan(order).fractions]
    for number, left, right in zip(printed.split(), fractions, fractions[1:], strict=False):
        unit = Fraction(1, 10 ** len(number.partition(".")[2]))
        assert abs(Fraction(number) - (left + right)) <= units * unit


@pytest.mark.parametrize("order", [4, 6, 8, 10])
def test_the_recommended_scheme_has_the_smallest_error_for_its_work(order):
    work = {
        name: len(schemes.scheme(name).fractions) * float(defects_of(name)[order + 1]) ** (1 / order)
        for name in FOR_SYMMETRIC_METHODS
        if schemes.scheme(name).order == order
    }
    assert min(work, key=work.get) == _MOST_EFFICIENT[order] == schemes.scheme(order).name


# The pendulum q' = p, p' = -sin q from rest at q_0: sin(q/2) = k cd(t, k), k = sin(q_0/2).
START = "1.1"


def pendulum(t):
    k = mp.sin(mp.mpf(START) / 2)
    q = 2 * mp.asin(k * mp.ellipfun("cd", t, k=k))
    return q, mp.diff(lambda s: 2 * mp.asin(k * mp.ellipfun("cd", s, k=k)), t)


def symplectic_euler(q, p, h, adjoint):
    if adjoint:
        q = q + h * p
        return q, p - h * mp.sin(q)
    p = p - h * mp.sin(q)
    return q + h * p, p


def measured_order(scheme, steps):
    with mpmath.workdps(45):
        exact, errors = pendulum(mp.one), []
        for n in (steps, 2 * steps):
            q, p = mp.mpf(START), mp.zero
            substeps = [(mp.mpf(x.numerator) / x.denominator / n, adjoint) for x, adjoint in scheme.substeps(symmetric=False)]
            for _ in range(n):
                for h, adjoint in substeps:
                    q, p = symplectic_euler(q, p, h, adjoint)
            errors.append(abs(q - exact[0]) + abs(p - exact[1]))
        return float(mp.log(errors[0] / errors[1], 2))


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("strang", 16),
        ("triple-jump-4", 16),
        ("suzuki-4", 16),
        ("mclachlan-4", 16),
        ("blanes-moan-4", 16),
        ("yoshida-6", 32),
        ("kahan-li-6", 32),
        ("sofroniou-spaletta-6", 32),
        ("blanes-moan-6", 32),
        ("suzuki-umeno-8", 32),
        ("kahan-li-8", 32),
        ("sofroniou-spaletta-8", 32),
        ("kahan-li-10", 64),
        ("sofroniou-spaletta-10", 32),
    ],
)
def test_compositions_of_the_symplectic_euler_method_have_their_order_on_the_pendulum(name, steps):
    scheme = schemes.scheme(name)
    assert measured_order(scheme, steps) == pytest.approx(scheme.order, abs=0.2)


def test_floats_suffice_for_round_off_accuracy_in_double_precision():
    exact = [float(x) for x in pendulum(mp.one)]
    for name in ("kahan-li-8", "sofroniou-spaletta-10"):
        q, p = float(START), 0.0
        for _ in range(20):
            for gamma in schemes.scheme(name).gammas:
                q += gamma / 40 * p
                p -= gamma / 20 * np.sin(q)
                q += gamma / 40 * p
        assert abs(q - exact[0]) + abs(p - exact[1]) < 2e-14


def test_schemes_of_ones_own():
    strang_twice = schemes.Scheme.of([0.5, 0.5], order=2, name="two halves")
    assert strang_twice.gammas == (0.5, 0.5) and strang_twice == schemes.Scheme.of(["1/2", "1/2"], order=2, name="two halves")
    verlet = schemes.Scheme.of([Fraction(1, 2)] * 2, order=2, basic_order=1)
    assert verlet.substeps(symmetric=False) == schemes.strang().substeps(symmetric=False)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: schemes.triple_jump(5), r"triple-jump needs an even order >= 4; got 5"),
        (lambda: schemes.triple_jump(2), r"triple-jump needs an even order >= 4; got 2"),
        (lambda: schemes.suzuki(4, basic_order=4), r"suzuki needs an even order >= 6; got 4"),
        (lambda: schemes.suzuki(4, basic_order=1), r"the basic method of suzuki needs an even order >= 2; got 1"),
        (lambda: schemes.suzuki(4.0), r"suzuki needs an even order >= 4; got 4\.0"),
        (
            lambda: schemes.kahan_li(4),
            r"kahan-li is published for the orders 6, 8, 10; got 4\. For other even orders use suzuki",
        ),
        (lambda: schemes.yoshida(True), r"yoshida is published for the orders 6; got True"),
        (
            lambda: schemes.scheme("kahan-8"),
            r"no scheme 'kahan-8'; known are 'strang' and triple-jump-4, suzuki-4, mclachlan-4",
        ),
        (lambda: schemes.scheme("suzuki"), r"no scheme 'suzuki'"),
        (lambda: schemes.scheme("suzuki-5"), r"suzuki needs an even order >= 4; got 5"),
        (lambda: schemes.scheme(12), r"an order out of 2, 4, 6, 8, 10, or a name; got 12\. For other even orders use suzuki"),
        (lambda: schemes.scheme(3), r"an order out of 2, 4, 6, 8, 10, or a name; got 3"),
        (lambda: schemes.Scheme.of([0.4, 0.6], order=2), r"user scheme must be symmetric"),
        (lambda: schemes.Scheme.of([1], order=2, basic_order=1), r"an even number of them if they alternate"),
        (lambda: schemes.Scheme.of([0.4, 0.4], order=2), r"must have the sum 1; theirs is 0\.8"),
        (lambda: schemes.Scheme.of([], order=2), r"must have the sum 1"),
        (lambda: schemes.Scheme.of([float("nan")], order=2), r"needs a list of finite numbers"),
        (lambda: schemes.Scheme.of(1, order=2), r"needs a list of finite numbers as fractions of h; got 1"),
        (lambda: schemes.Scheme.of([1], order=3), r"user scheme needs an even order >= 2; got 3"),
        (lambda: schemes.Scheme.of([1], order=4, basic_order=3), r"if it is symmetric, needs an even order >= 2; got 3"),
    ],
)
def test_refusals_say_what_is_needed(call, message):
    with pytest.raises(InputError, match=message):
        call()

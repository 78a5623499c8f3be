"""Coefficients of composition methods: high order from a basic method of low order.

A symmetric method Psi_h of order 2 becomes a symmetric method of order p by

    Psi_{gamma_m h} o ... o Psi_{gamma_1 h},    gamma_i = gamma_{m+1-i},    gamma_1 + ... + gamma_m = 1,

if the gamma_i satisfy the order conditions, and a method Phi_h of order 1 with its adjoint Phi*_h becomes one by

    Phi*_{beta_s h} o Phi_{alpha_s h} o ... o Phi*_{beta_1 h} o Phi_{alpha_1 h}.

Every gamma scheme serves such a Phi too, with Psi_h = Phi*_{h/2} o Phi_{h/2}. E. Hairer, C. Lubich and G. Wanner,
Geometric Numerical Integration, 2nd edition, Springer 2006, section V.3. They begin with the adjoint: compose the adjoint
of the method for that. Structure that the basic method keeps (symplecticity, constraints, reversibility) is kept.

The published digits below were continued to 100 digits by Newton's iteration on the order conditions; where these leave
parameters free, the solution nearest to the published digits was taken. Coefficients are rounded to float64 once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any, NamedTuple

from dalembert.errors import InputError


class Substep(NamedTuple):
    """A step of the basic method, or of its adjoint, with a fraction of h."""

    fraction: Fraction
    adjoint: bool


@dataclass(frozen=True, repr=False)
class Scheme:
    """Fractions of h with which a basic method is composed to a symmetric method of a higher order.

    Take one of the published schemes (`kahan_li(8)`, `scheme("suzuki-6")`, `scheme(8)`), or use `Scheme.of` for your own.

    Attributes:
        name: A label; the published schemes are found by it (`scheme`).
        fractions: The fractions of h as rational numbers, in the order of the substeps; they are symmetric, with sum 1.
        order: The order of the composition.
        basic_order: The least order of the basic method: 1 for schemes that alternate between a method and its adjoint,
            otherwise the even order of a symmetric method (2 for all published schemes).
        reference: Who published it.

    """

    name: str
    fractions: tuple[Fraction, ...]
    order: int
    basic_order: int
    reference: str

    @classmethod
    def of(
        cls, fractions: Iterable[Any], *, order: int, basic_order: int = 2, name: str = "user scheme", reference: str = ""
    ) -> Scheme:
        """A scheme from numbers of your own: ints, floats, fractions, decimals or strings such as "1/3" or "0.28".

        With `basic_order=1` the fractions belong to the method, its adjoint, the method, and so on.

        Raises:
            InputError: The fractions are not numbers, not symmetric, or their sum is not 1; or the order is not even.

        Example:
            >>> from dalembert import schemes
            >>> schemes.Scheme.of(["1/4", "1/4", "1/4", "1/4"], order=2).gammas
            (0.25, 0.25, 0.25, 0.25)

        """
        _check_order(name, order, first=2)
        if basic_order != 1:
            _check_order(f"the basic method of {name}, if it is symmetric,", basic_order, first=2)
        try:
            exact = tuple(map(Fraction, fractions))
        except (TypeError, ValueError, OverflowError, ZeroDivisionError):
            raise InputError(f"{name} needs a list of finite numbers as fractions of h; got {fractions!r}") from None
        if exact != exact[::-1] or (basic_order == 1 and len(exact) % 2):
            raise InputError(
                f"{name} must be symmetric: fractions with gamma_i = gamma_(m+1-i), and an even number of them "
                "if they alternate with the adjoint"
            )
        if not math.isclose(sum(exact), 1, rel_tol=1e-13):
            raise InputError(f"the fractions of {name} must have the sum 1; theirs is {float(sum(exact))!r}")
        return cls(name, exact, order, basic_order, reference)

    @property
    def gammas(self) -> tuple[float, ...]:
        """The fractions of h as floats, correctly rounded."""
        return tuple(map(float, self.fractions))

    def substeps(self, *, symmetric: bool) -> tuple[Substep, ...]:
        """The substeps, first one first, for a basic method that is symmetric, or for one that is not.

        A method Phi that is not symmetric takes turns with its adjoint: Psi_{gamma h} = Phi*_{gamma h/2} o Phi_{gamma h/2}.

        Example:
            >>> from dalembert import schemes
            >>> [(float(x), adjoint) for x, adjoint in schemes.strang().substeps(symmetric=False)]
            [(0.5, False), (0.5, True)]

        """
        if self.basic_order == 1:
            return tuple(Substep(x, adjoint=i % 2 == 1) for i, x in enumerate(self.fractions))
        if symmetric:
            return tuple(Substep(x, adjoint=False) for x in self.fractions)
        return tuple(Substep(x / 2, adjoint) for x in self.fractions for adjoint in (False, True))

    def __repr__(self) -> str:
        return f"Scheme({self.name!r}, order={self.order}, substeps={len(self.fractions)})"


def strang() -> Scheme:
    """The basic method itself, once: of order 2 as Phi*_{h/2} o Phi_{h/2} from any method Phi and its adjoint (Strang 1968).

    Example:
        >>> from dalembert import schemes
        >>> schemes.strang().gammas
        (1.0,)

    """
    return Scheme("strang", (Fraction(1),), 2, 2, "Strang (1968), SIAM J. Numer. Anal. 5")


def triple_jump(order: int, *, basic_order: int = 2) -> Scheme:
    """Three steps of the scheme of order p - 2, and so on down to the basic method; 3^k substeps for order 2 + 2 k.

        gamma_1 = gamma_3 = 1 / (2 - 2^(1/(p-1))),    gamma_2 = 1 - 2 gamma_1

    The substeps are long, gamma_2 = -1.7 for p = 4; `suzuki` and the optimised schemes are more accurate.
    Creutz and Gocksch (1989), Suzuki (1990), Yoshida (1990).

    Args:
        order: The order p, even.
        basic_order: The even order of the symmetric basic method, from which the recursion starts.

    Example:
        >>> from dalembert import schemes
        >>> schemes.triple_jump(4).gammas
        (1.3512071919596575, -1.7024143839193153, 1.3512071919596575)

    """
    reference = "Creutz and Gocksch (1989); Suzuki (1990); Yoshida (1990), Phys. Lett. A 150"
    return _recursive("triple-jump", 2, order, basic_order, reference)


def suzuki(order: int, *, basic_order: int = 2) -> Scheme:
    """Suzuki's fractals: five steps of the scheme of order p - 2, and so on; 5^k substeps for order 2 + 2 k.

        gamma_1 = gamma_2 = gamma_4 = gamma_5 = 1 / (4 - 4^(1/(p-1))),    gamma_3 = 1 - 4 gamma_1

    No substep is longer than h (Suzuki 1990).

    Args:
        order: The order p, even.
        basic_order: The even order of the symmetric basic method, from which the recursion starts.

    Example:
        >>> from dalembert import schemes
        >>> schemes.suzuki(4).gammas[2]
        -0.657963087177503

    """
    return _recursive("suzuki", 4, order, basic_order, "Suzuki (1990), Phys. Lett. A 146")


def mclachlan(order: int) -> Scheme:
    """McLachlan's scheme of order 4 with 5 substeps.

    Example:
        >>> from dalembert import schemes
        >>> schemes.mclachlan(4).gammas[0]
        0.28

    """
    return _published("mclachlan", order)


def yoshida(order: int) -> Scheme:
    """Yoshida's scheme A of order 6 with 7 substeps; `kahan_li(6)` is more accurate.

    Example:
        >>> from dalembert import schemes
        >>> len(schemes.yoshida(6).gammas)
        7

    """
    return _published("yoshida", order)


def kahan_li(order: int) -> Scheme:
    """The schemes of Kahan and Li of orders 6, 8 and 10 with 9, 17 and 31 substeps.

    That of order 6 was found by McLachlan (1995) too; that of order 10 has as few substeps as its 16 order conditions suggest.

    Example:
        >>> from dalembert import schemes
        >>> schemes.kahan_li(8)
        Scheme('kahan-li-8', order=8, substeps=17)

    """
    return _published("kahan-li", order)


def suzuki_umeno(order: int) -> Scheme:
    """The scheme of Suzuki and Umeno of order 8 with 15 substeps; found by McLachlan (1995) too.

    Example:
        >>> from dalembert import schemes
        >>> schemes.suzuki_umeno(8)
        Scheme('suzuki-umeno-8', order=8, substeps=15)

    """
    return _published("suzuki-umeno", order)


def sofroniou_spaletta(order: int) -> Scheme:
    """The schemes of Sofroniou and Spaletta of orders 6, 8 and 10 with 13, 21 and 35 substeps: small errors for their work.

    Example:
        >>> from dalembert import schemes
        >>> schemes.sofroniou_spaletta(10)
        Scheme('sofroniou-spaletta-10', order=10, substeps=35)

    """
    return _published("sofroniou-spaletta", order)


def blanes_moan(order: int) -> Scheme:
    """The schemes S of Blanes and Moan of orders 4 and 6: 6 and 10 steps each of a first-order method and of its adjoint.

    They are published for splittings H = A + B, with a_1 = alpha_1, b_1 = alpha_1 + beta_1, a_2 = beta_1 + alpha_2, ...

    Example:
        >>> from dalembert import schemes
        >>> schemes.blanes_moan(4).substeps(symmetric=False)[1].adjoint
        True

    """
    return _published("blanes-moan", order)


def scheme(order_or_name: int | str) -> Scheme:
    """The scheme with a given name, such as "kahan-li-8", or the most efficient one of an order 2, 4, 6, 8 or 10.

    "triple-jump-p" and "suzuki-p" exist for every even p >= 4. Efficient means that (number of substeps) C^(1/p) is small, with
    C the largest coefficient of the leading error term.

    Example:
        >>> from dalembert import schemes
        >>> schemes.scheme(8), schemes.scheme("triple-jump-6")
        (Scheme('sofroniou-spaletta-8', order=8, substeps=21), Scheme('triple-jump-6', order=6, substeps=9))

    """
    if isinstance(order_or_name, str):
        family, _, order = order_or_name.rpartition("-")
        if order_or_name == "strang":
            return strang()
        if family in _FAMILIES and order.isdecimal():
            return _FAMILIES[family](int(order))
        raise InputError(f"there is no scheme {order_or_name!r}; known are 'strang' and {_listed(_names())}")
    if type(order_or_name) is not int or order_or_name not in _MOST_EFFICIENT:
        raise InputError(
            f"scheme needs an order out of {_listed(_MOST_EFFICIENT)}, or a name; got {order_or_name!r}. For other "
            "even orders use suzuki(order)"
        )
    return scheme(_MOST_EFFICIENT[order_or_name])


_FAMILIES: dict[str, Callable[[int], Scheme]] = {
    "triple-jump": triple_jump,
    "suzuki": suzuki,
    "mclachlan": mclachlan,
    "yoshida": yoshida,
    "kahan-li": kahan_li,
    "suzuki-umeno": suzuki_umeno,
    "sofroniou-spaletta": sofroniou_spaletta,
    "blanes-moan": blanes_moan,
}

_MOST_EFFICIENT = {
    2: "strang",
    4: "suzuki-4",
    6: "sofroniou-spaletta-6",
    8: "sofroniou-spaletta-8",
    10: "sofroniou-spaletta-10",
}


def _names() -> list[str]:
    return ["triple-jump-4", "suzuki-4", *(f"{family}-{order}" for family, order in _PUBLISHED)]


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(map(str, names))


def _check_order(name: str, order: Any, first: int) -> None:
    if isinstance(order, bool) or not isinstance(order, int) or order < first or order % 2:
        raise InputError(f"{name} needs an even order >= {first}; got {order!r}")


def _recursive(family: str, outer: int, order: int, basic_order: int, reference: str) -> Scheme:
    """`outer` steps of length 1 / (outer - outer^(1/(p-1))) around one backward step, for p = basic_order + 2, ..., order."""
    _check_order(f"the basic method of {family}", basic_order, first=2)
    _check_order(family, order, first=basic_order + 2)
    with localcontext(Context(prec=120)):
        gammas = [Decimal(1)]
        for p in range(basic_order + 2, order + 2, 2):
            long = 1 / (outer - Decimal(outer) ** (1 / Decimal(p - 1)))
            outside = [long] * (outer // 2)
            gammas = [x * y for x in (*outside, 1 - outer * long, *outside) for y in gammas]
    suffix = "" if basic_order == 2 else f"-of-{basic_order}"
    fractions = _completed(gammas[: len(gammas) // 2], basic_order)
    return Scheme(f"{family}-{order}{suffix}", fractions, order, basic_order, reference)


def _published(family: str, order: int) -> Scheme:
    if type(order) is not int or (family, order) not in _PUBLISHED:
        orders = _listed(p for name, p in _PUBLISHED if name == family)
        raise InputError(
            f"{family} is published for the orders {orders}; got {order!r}. For other even orders use suzuki(order)"
        )
    reference, basic_order, digits = _PUBLISHED[family, order]
    return Scheme(f"{family}-{order}", _completed(digits.split(), basic_order), order, basic_order, reference)


def _completed(numbers: Iterable[str | Decimal], basic_order: int) -> tuple[Fraction, ...]:
    """The symmetric list with this first half and the sum 1: one fraction in the middle, or two if the adjoint takes turns."""
    half = tuple(map(Fraction, numbers))
    rest = Fraction(1, 2) - sum(half, start=Fraction(0))
    middle = (rest, rest) if basic_order == 1 else (2 * rest,)
    return (*half, *middle, *half[::-1])


# Reference, order of the basic method, and the first half of the fractions, without the middle.
_PUBLISHED: dict[tuple[str, int], tuple[str, int, str]] = {
    ("mclachlan", 4): (
        "McLachlan (1995), SIAM J. Sci. Comput. 16",
        2,
        """
        0.28
        0.625466428467670045012338905492649012918215831142346336278001171135782995582288269415047902586907004
        """,
    ),
    ("yoshida", 6): (
        "Yoshida (1990), Phys. Lett. A 150, solution A",
        2,
        """
        0.7845136104775572638194976338663498757768244174514933845679477989512599747954494154996798387786527749
        0.2355732133593581336847931829785346016864680821034011190034931309562147121522226515782465630278169124
        -1.177679984178871006946415680964315734639269252634598484475368513796741556181508926143147863197621127
        """,
    ),
    ("kahan-li", 6): (
        "Kahan and Li (1997), Math. Comp. 66; McLachlan (1995)",
        2,
        """
        0.3921614440073141392792505574226714038049342608879757524419848180368442002282514504906205795179416904
        0.3325991367893594385997486375000496468815869443403255998083915672832087932870331857408104859476914233
        -0.7062461725576393598099648195492564593955106668261956090045566041489371747737112802367764492730946461
        0.08221359629355080023149044810205633110329389127060704921035041839286679012225876553274800685731098137
        """,
    ),
    ("kahan-li", 8): (
        "Kahan and Li (1997), Math. Comp. 66",
        2,
        """
        0.1302024830888900808788176320967005223572472338145740725510324822623433019809985021755589440017967711
        0.5611629817751083845619644077001505672661593543409954143622439134304340517193158722254998785981788481
        -0.3894749626448472864080785982352483888360680467715762472567423990379890765589862080731170261389391986
        0.1588419065551556008962107457071524814121478094312319015309640112771181606130064311669761553183196011
        -0.395903894133237577336231539347938936026771485426765011739069064048111586843623240699191467008078505
        0.184539640978315707091832541533375462818987344150312014026081593916940705541138870518476937296328397
        0.2583743876863220472939791099949394718130762089521670638239160298422988353354153881671953918348802285
        0.2950117236093102988709662402182281129765432303515052161051479371472682611926702776518756548180334458
        """,
    ),
    ("kahan-li", 10): (
        "Kahan and Li (1997), Math. Comp. 66",
        2,
        """
        -0.4815989560025300287026646099162835118507004357251121178643002569584345168281173011375386121369306367
        0.003630393154459592687870162189213398578096149618371785898986008202392464756259095052162549983544221255
        0.5018031755872314027908454291428761239319205117301593043009989892481763544884810141738528816835387806
        0.2829840262450625486841255435689939455737989494707962716933286051957222976882618465964556982716253332
        0.8070296789537222380585855952397249065740301502542428003544911226579503735977680319028193049441258316
        -0.02609058053859220544739076638369963027742692967196561088010931186214929787797628665703538400647955455
        -0.8728659014631807154685648719625389008856539789441405238246644177260919056931187565643718611923911396
        -0.5237356806251058164262702233064955438096446616156029604668557957806881436148807973715560721380495656
        0.4452184429995278925203280832164790757438760821551588335500006127204976918662333255397444551781111998
        0.1861228954709790788735989070260887341765118576506335304598535037178144280579302325024484722888009387
        0.2313732786643836063337927821763410900081849577158335255463708281816259416013481373038788200835652273
        -0.5219103659041862890525117154747381007971518947254031163181392106256528236640192088582623646526427084
        0.7486611371449929679265194906192289733688412257411513126741992005695905114338927409226611328010715902
        0.06673651189060405753154990358214541042457194987004374091406878530593982148545645756449129594439312873
        -0.8036032437567083031638812063619301636799241556822242589530374586346654829725150539063393974557446592
        """,
    ),
    ("suzuki-umeno", 8): (
        "Suzuki and Umeno (1993); McLachlan (1995), SIAM J. Sci. Comput. 16",
        2,
        """
        0.7416703643506129534482278017838063156035365100798605902399317513962462132175110987191824962969297359
        -0.409100825800031593997300095893563417309917830234813621291561993277128841586357733939324615238218182
        0.19075471029623837995387625645037166273546053987251027586523341181610376929977124428685629869371242
        -0.5738624711160822666563877266355357421595090543332694085586611103560089855817544978541797091762779871
        0.2990641813036559238444635406886029882258228852946239827463855261958853360328532939026344037316195083
        0.3346249182452981837849579798821822886336919163104612165374417158036618913379999563156859958164262788
        0.3152930923967665966320566638110024309940808647172138634454531649204354050118876209181830326626748379
        """,
    ),
    ("sofroniou-spaletta", 6): (
        "Sofroniou and Spaletta (2005), Optim. Methods Softw. 20",
        2,
        """
        0.1386193085405169524580801304262535368810899123223284511795117960359849385562195681843212418516096193
        0.1334656285107476040704685883220925598827853835270356883181541972967062560575549681328263098187153206
        0.1307053101144922519054275578501520438883156845007065198931222635284064677384573588831851969154602255
        0.129618937569070347725053665370911842305732359883028326886235146489012244665230527006420985386710119
        -0.3500032489392089651617083091132256056688404283973319854710265150903104184057610784437394387611891017
        0.1180553065300238717027343895404897548725028933448000106885086979036069503975758103968699568799735102
        """,
    ),
    ("sofroniou-spaletta", 8): (
        "Sofroniou and Spaletta (2005), Optim. Methods Softw. 20",
        2,
        """
        0.1064772898455003182393196785489584846016270398050783934734235126873343993344666387882613248953201804
        0.1083740864583572639743341059154592727021531478608493227978364532069302044252782673130211801295622237
        0.3533782105265434241953454132407993383952673896029064874148007016661417508786421718723204716657388149
        -0.2334141402316508219878028112831948124368274211810844569079426463626310606350241805956581942405550035
        -0.2444526679152884126946217141321641574864971472147004257395539111928764416533839390177217933414367487
        0.113178484357556333147009525155989713980570775383616256245865296557247782152032506377188603580716001
        0.1189290562500035006269297228395084687117637109326059281190177473650365561675230207729083205511755956
        0.1260391232182598814030567026836462356049594345097148857450934270423350431212482429754399181861912535
        0.1258171873617604180439239164158662269239027302155244144290127645552913199019190821356361375307713401
        0.1169913501921764218072288143353290818235002037296378961417958549016693935442465519138672492871988711
        """,
    ),
    ("sofroniou-spaletta", 10): (
        "Sofroniou and Spaletta (2005), Optim. Methods Softw. 20",
        2,
        """
        0.07879572252168641926390767933768424829897299747994507675876495729196559142862910681617191030641837724
        0.3130961034151085277648124719264726960940545807615163359632021397978642616093677367878100660222925932
        0.02791838323507806610952027327529882193466672684755291838563931057971167974868221934551055375384697114
        -0.2295928415939070941512133967965498764897775807560191322272892169269177388396991330392663052212066951
        0.1309620610771648631746568592796054142646864664051251674287706194450278626922965841673415172492614003
        -0.269733405654510714344609732224111496250771566876207097194174641699664645892097842393894803537350783
        0.07497334315589143566613710564141041204893518215223487586655415226252974877732831204982784193368195994
        0.1119934239998102048895750807364020588253310707337540917695120794169666898286592882670312750278100859
        0.3661334495462267511931481235314990830900941393393815274100512944286767238401195237141715769237966756
        -0.39910563013603589787862981058340473047299365144713047908076476507715562741664454832871685892711273
        0.1030873985274710773158027700137244767471216964305439393759462722500502834954339382380039899283215456
        0.4114308739558902378207041189760783506842418545347374841310272203892655971970423528390604480658464764
        -0.004866360583135261762195659309977062737515871462607216052496829943819591030548789645375501858356515153
        -0.3920333537086399064480819364261042701844973504640410180557477566357892150221583627538590034638333043
        0.05194250296244964703718290401597581337901401695363133902436053508693835207159665128623504329303059759
        0.05066509075992449633587434415686579703567939173724193323990205333764517759697797583163592026242658041
        0.04967437063972987905456880027946093371686828425541600841380235125799080104484943335932040437812052563
        """,
    ),
    ("blanes-moan", 4): (
        "Blanes and Moan (2002), J. Comput. Appl. Math. 142, method S of 6 stages",
        1,
        """
        0.07920369643119569926528466990788051958456303021588465921629431642689309730209643171715962819382770658
        0.130311410182166364376356096114799451336424786735847086136370100773847139756168531415107068056913904
        0.2228614958676075849864411813176269140098193535945925481437596612394094309847900354025518021487864578
        -0.3667132690474256775708926234160093501846909638661517617142628843517250253619359802920075246433720948
        0.3246481886897061743718093120658406973000351511950210897263080494419166050859024262540844041595818938
        """,
    ),
    ("blanes-moan", 6): (
        "Blanes and Moan (2002), J. Comput. Appl. Math. 142, method S of 10 stages",
        1,
        """
        0.05026276440039247720141864060128729515667619810280778404116751054071109288739011458750759575154689293
        0.09855368350065047887768279071668440148923613092369597342877930356711497955889525874983151015232530224
        0.3149606169276952548810921052314170631048744329806849900803525509458987053093788097801778814282006038
        -0.4473464826954782845643234640296048482631638443902129663877079663299637025113530799071217297968615697
        0.4924263724898760717793581497352710441493425394268208339572034159128561774599884915506564497655419013
        -0.4251187677976912788352903664670021671121980281727633626522987841829394166017229116078766823380125004
        0.2370639139781206800574736712104224455940884210202254577592865061993449485103646905443174479971306465
        0.1956024886000522689845860226403936567963420718911801005488702119717849737309477727630654085636981828
        0.3463581898507285618359907067683979382391142412400386314610648170757574099897828722784772386202727231
        """,
    ),
}

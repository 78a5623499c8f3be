// Extrapolation and collocation in double-double arithmetic (32 digits), for any model whose equations CasADi wrote as C.
//
// Compiled by benchmarks/double_double.py with -DMODEL="file", -Dcasadi_real=dd and without contraction of products and sums.
// The model is the underlying ODE of a constrained system, x' = rate(t, x, mu), with multipliers mu from 0 = algebra(t, x, mu).
//
//   T. J. Dekker, Numer. Math. 18 (1971); Y. Hida, X. S. Li, D. H. Bailey, ARITH 15 (2001): the arithmetic.
//   E. Hairer, S. P. Norsett, G. Wanner, Solving Ordinary Differential Equations I, II.9: extrapolation of the midpoint rule.
//   E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, IV.8: simplified Newton iteration of implicit methods.
#include <algorithm>
#include <cmath>
#include <quadmath.h>
#include <vector>

struct dd {
    double hi, lo;
    dd(double a = 0, double b = 0) : hi(a), lo(b) {}
    explicit operator bool() const { return hi != 0; }
};

static dd fast_sum(double a, double b) { double s = a + b; return dd(s, b - (s - a)); }
static dd two_sum(double a, double b) { double s = a + b, v = s - a; return dd(s, (a - (s - v)) + (b - v)); }
static dd two_prod(double a, double b) { double p = a * b; return dd(p, std::fma(a, b, -p)); }

#define OPERATION __attribute__((noinline)) dd  // so that long models compile soon
OPERATION operator+(dd a, dd b) {
    dd s = two_sum(a.hi, b.hi), t = two_sum(a.lo, b.lo);
    s = fast_sum(s.hi, s.lo + t.hi);
    return fast_sum(s.hi, s.lo + t.lo);
}
static inline dd operator-(dd a) { return dd(-a.hi, -a.lo); }
OPERATION operator-(dd a, dd b) { return a + (-b); }
OPERATION operator*(dd a, dd b) {
    dd p = two_prod(a.hi, b.hi);
    return fast_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}
OPERATION operator/(dd a, dd b) {
    double first = a.hi / b.hi;
    dd rest = a - b * dd(first);
    double second = rest.hi / b.hi;
    rest = rest - b * dd(second);
    return fast_sum(first, second) + dd(rest.hi / b.hi);
}
static dd &operator+=(dd &a, dd b) { return a = a + b; }
static dd &operator-=(dd &a, dd b) { return a = a - b; }
static dd &operator*=(dd &a, dd b) { return a = a * b; }
static dd &operator/=(dd &a, dd b) { return a = a / b; }
static bool operator<(dd a, dd b) { return a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo); }
static bool operator>(dd a, dd b) { return b < a; }
static bool operator<=(dd a, dd b) { return !(b < a); }
static bool operator>=(dd a, dd b) { return !(a < b); }
static bool operator==(dd a, dd b) { return a.hi == b.hi && a.lo == b.lo; }
static bool operator!=(dd a, dd b) { return !(a == b); }


typedef __float128 quad;
static quad wide(dd a) { return (quad)a.hi + (quad)a.lo; }
static dd narrow(quad a) { double hi = (double)a; return dd(hi, (double)(a - (quad)hi)); }
#define BY_QUAD(name) OPERATION name(dd a) { return narrow(name##q(wide(a))); }
BY_QUAD(sin) BY_QUAD(cos) BY_QUAD(tan) BY_QUAD(asin) BY_QUAD(acos) BY_QUAD(atan) BY_QUAD(sqrt) BY_QUAD(exp) BY_QUAD(log)
BY_QUAD(sinh) BY_QUAD(cosh) BY_QUAD(tanh)
OPERATION atan2(dd a, dd b) { return narrow(atan2q(wide(a), wide(b))); }
OPERATION pow(dd a, dd b) { return narrow(powq(wide(a), wide(b))); }
OPERATION hypot(dd a, dd b) { return sqrt(a * a + b * b); }
static dd fabs(dd a) { return a.hi < 0 ? -a : a; }
static dd fmax(dd a, dd b) { return a < b ? b : a; }
static dd fmin(dd a, dd b) { return a < b ? a : b; }

#include MODEL  // rate, algebra

typedef std::vector<dd> Vector;
static const int n = N_STATE, m = N_MULTIPLIERS, switches = N_SWITCHES;
static Vector parameters, modes, multipliers(m);
static long evaluations;

static std::vector<const dd *> inputs;
static std::vector<dd *> outputs;
static std::vector<casadi_int> integers;
static Vector workspace;

template <class W> static void reserve(W work) {
    casadi_int arg, res, iw, w;
    work(&arg, &res, &iw, &w);
    inputs.resize(std::max((size_t)arg, inputs.size())), outputs.resize(std::max((size_t)res, outputs.size()));
    integers.resize(std::max((size_t)iw + 1, integers.size())), workspace.resize(std::max((size_t)w + 1, workspace.size()));
}
template <class F> static void call(F function, const dd **in, dd **out) {
    std::copy(in, in + 5, inputs.begin());
    std::copy(out, out + 2, outputs.begin());
    function(inputs.data(), outputs.data(), integers.data(), workspace.data(), 0);
}

// Gaussian elimination with complete pivoting; rows that depend on others leave their unknowns zero.
static void solve(std::vector<dd> &A, Vector &b) {
    std::vector<int> column(m);
    for (int j = 0; j < m; j++) column[j] = j;
    int rank = 0;
    double first = 0;
    for (; rank < m; rank++) {
        int p = rank, q = rank;
        for (int j = rank; j < m; j++)
            for (int i = rank; i < m; i++)
                if (std::fabs(A[i + m * j].hi) > std::fabs(A[p + m * q].hi)) p = i, q = j;
        double pivot = std::fabs(A[p + m * q].hi);
        if (rank == 0) first = pivot;
        if (!(pivot > 1e-14 * first)) break;
        for (int j = 0; j < m; j++) std::swap(A[rank + m * j], A[p + m * j]);
        for (int i = 0; i < m; i++) std::swap(A[i + m * rank], A[i + m * q]);
        std::swap(b[rank], b[p]), std::swap(column[rank], column[q]);
        for (int i = rank + 1; i < m; i++) {
            if (A[i + m * rank].hi == 0) continue;
            dd factor = A[i + m * rank] / A[rank + m * rank];
            for (int j = rank + 1; j < m; j++) A[i + m * j] -= factor * A[rank + m * j];
            b[i] -= factor * b[rank];
        }
    }
    Vector x(m);
    for (int i = rank - 1; i >= 0; i--) {
        dd sum = b[i];
        for (int j = i + 1; j < rank; j++) sum -= A[i + m * j] * x[column[j]];
        x[column[i]] = sum / A[i + m * i];
    }
    b = x;
}

// x' and what switches the model, at (t, x): Newton's iteration for the multipliers, one step of it where they enter linearly.
static void slope(dd t, const Vector &x, Vector &f, Vector &switching) {
    evaluations++;
    const dd *in[] = {&t, x.data(), multipliers.data(), parameters.data(), modes.data()};
    if (m) {
        static Vector A(m * m), b(m);
        if (LINEAR) std::fill(multipliers.begin(), multipliers.end(), dd());
        for (int k = 0; k < (LINEAR ? 1 : 30); k++) {
            dd *out[] = {A.data(), b.data()};
            call(algebra, in, out);
            solve(A, b);
            double largest = 0, size = 0;
            for (int i = 0; i < m; i++) {
                multipliers[i] -= b[i];
                largest = std::max(largest, std::fabs(b[i].hi)), size = std::max(size, std::fabs(multipliers[i].hi));
            }
            if (largest <= 1e-29 * size) break;
        }
    }
    dd *out[] = {f.data(), switching.data()};
    call(rate, in, out);
}

static double error_of(const Vector &d, const Vector &x, const double *scale) {
    double most = 0;
    for (int i = 0; i < n; i++) most = std::max(most, std::fabs(d[i].hi) / (std::fabs(x[i].hi) + scale[i]));
    return most == most ? most : INFINITY;
}

// One step of extrapolation with n_j = 2, 4, ..., 2 columns (II.9.13 with the harmonic sequence of even numbers); returns the
// difference of the last two entries of the last row, relative.
static double extrapolated(dd t, const Vector &x, const Vector &f0, dd H, int columns, Vector &end, const double *scale) {
    static std::vector<Vector> T;
    static Vector before(n), now(n), f(n), s(switches + 1);
    T.assign(columns, Vector(n));
    Vector last(n);
    for (int j = 0; j < columns; j++) {
        int number = 2 * (j + 1);
        dd h = H / dd(number);
        before = x;
        for (int i = 0; i < n; i++) now[i] = x[i] + h * f0[i];
        for (int k = 1; k < number; k++) {
            slope(t + dd(k) * h, now, f, s);
            for (int i = 0; i < n; i++) {
                dd next = before[i] + dd(2) * h * f[i];
                before[i] = now[i], now[i] = next;
            }
        }
        slope(t + H, now, f, s);  // Gragg's smoothing
        for (int i = 0; i < n; i++) now[i] = (before[i] + now[i] + h * f[i]) / dd(2);
        // T_{j,k+1} = T_{j,k} + (T_{j,k} - T_{j-1,k}) / ((n_j / n_{j-k})^2 - 1), row by row
        Vector entry = now;
        for (int k = 0; k < j; k++) {
            dd weight = dd(1) / (dd(number) * dd(number) / (dd(2 * (j - k)) * dd(2 * (j - k))) - dd(1));
            Vector next(n);
            for (int i = 0; i < n; i++) next[i] = entry[i] + weight * (entry[i] - T[k][i]);
            if (k == j - 1) last = entry;
            T[k] = entry;
            entry = next;
        }
        T[j] = entry;
    }
    end = T[columns - 1];
    for (int i = 0; i < n; i++) last[i] -= end[i];
    return error_of(last, end, scale);
}

static Vector read(const double *pairs, int size) {
    Vector found(size);
    for (int i = 0; i < size; i++) found[i] = dd(pairs[2 * i], pairs[2 * i + 1]);
    return found;
}
static void write(const Vector &x, double *pairs) {
    for (int i = 0; i < n; i++) pairs[2 * i] = x[i].hi, pairs[2 * i + 1] = x[i].lo;
}
// How far the nearest switch is: negative beyond it.
static double margin(const Vector &s) {
    double least = INFINITY;
    for (int k = 0; k < switches; k++) least = std::min(least, modes[k].hi > 0.5 ? s[k].hi : -s[k].hi);
    return least;
}

extern "C" {

long evaluated() { return evaluations; }

void set_model(const double *theta, int size, const double *mode, const double *guess) {
    parameters = read(theta, size);
    modes.assign(switches + 1, dd());
    for (int k = 0; k < switches; k++) modes[k] = dd(mode[k]);
    for (int i = 0; i < m; i++) multipliers[i] = dd(guess[i]);
    evaluations = 0;
    reserve(rate_work), reserve(algebra_work);
}

void switching_at(double t, const double *x0, double *found) {
    Vector x = read(x0, n), f(n), s(switches + 1);
    slope(dd(t), x, f, s);
    for (int k = 0; k < switches; k++) found[k] = s[k].hi;
}

// A time inside a step at which a switch is passed, also where it is passed twice; `to` if there is none. Where margins may be
// least is found with a cubic between both ends of the step, exact to about a millionth; there it is found by parabolas.
static double switched_inside(double t, double to, const Vector &x, const Vector &f, const Vector &end, const Vector &f_end,
                              int columns, const double *scale) {
    const int parts = 16;
    const double near = 1e-3, golden = (std::sqrt(5.0) - 1) / 2, h = to - t;
    Vector point(n), slopes(n), s(switches + 1);
    auto about = [&](double c) {
        double d = 1 - c;
        for (int i = 0; i < n; i++)
            point[i] = dd((1 + 2 * c) * d * d) * x[i] + dd(c * c * (3 - 2 * c)) * end[i] +
                       dd(h) * (dd(c * d * d) * f[i] - dd(c * c * d) * f_end[i]);
        slope(dd(t) + dd(c * h), point, slopes, s);
        return margin(s);
    };
    auto at = [&](double c) {
        extrapolated(dd(t), x, f, dd(c * h), columns, point, scale);
        slope(dd(t) + dd(c * h), point, slopes, s);
        return margin(s);
    };
    double margins[parts + 1];
    for (int k = 0; k <= parts; k++) margins[k] = about(double(k) / parts);
    for (int k = 0; k <= parts; k++) {
        const int left = std::max(k - 1, 0), right = std::min(k + 1, parts);
        if (margins[k] > 0.05 || margins[k] > margins[left] || margins[k] > margins[right]) continue;
        double low = double(left) / parts, high = double(right) / parts;
        double one = high - golden * (high - low), other = low + golden * (high - low), of_one = about(one), of_other = about(other);
        while (high - low > 1e-3 / parts) {
            if (of_one < of_other) high = other, other = one, of_other = of_one, of_one = about(one = high - golden * (high - low));
            else low = one, one = other, of_one = of_other, of_other = about(other = low + golden * (high - low));
        }
        if (std::min(of_one, of_other) > near || one < 2e-3 / parts || other > 1 - 2e-3 / parts) continue;  // or at an end
        double least = one, width = 0.05 / parts;
        for (int trial = 0; trial < 3; trial++, width /= 8) {
            double c = std::min(std::max(least, width), 1 - width), before = at(c - width), middle = at(c), after = at(c + width);
            for (double found : {before, middle, after})
                if (found < 0) return t + h * (found == before ? c - width : found == middle ? c : c + width);
            double bend = before - 2 * middle + after;
            if (!(bend > 0)) break;
            least = c + width * std::min(1.0, std::max(-1.0, (before - after) / (2 * bend)));
        }
    }
    return to;
}

// From t0 to t1 with steps that keep the error of each at the tolerance; the grid is returned, with the modes after each of its
// times. A step that crosses a switch is shortened to end there (secants and bisection of its length). Returns the number of
// steps, or a negative one where there is no room or the steps become too small.
int extrapolate(double *x0, double t0, double t1, double h, double tolerance, int columns, const double *scale, double *grid,
                double *grid_modes, int room) {
    Vector x = read(x0, n), f(n), s(switches + 1), end(n), s_end(switches + 1), f_end(n);
    double t = t0;
    int steps = 0;
    slope(dd(t), x, f, s);
    while (t < t1) {
        if (steps >= room || h < 1e-13 * (t1 - t0)) return -steps - 1;
        double to = t + h >= t1 ? t1 : t + h;
        double error = extrapolated(dd(t), x, f, dd(to) - dd(t), columns, end, scale);
        double factor = 0.9 * std::pow(tolerance / std::max(error, 1e-3 * tolerance), 1.0 / (2 * columns - 1));
        if (!(error <= tolerance)) {
            h = (to - t) * (error < INFINITY ? std::max(0.2, factor) : 0.2);
            continue;
        }
        slope(dd(to), end, f_end, s_end);
        double dip = switches ? switched_inside(t, to, x, f, end, f_end, columns, scale) : to;
        if (dip < to) {
            to = dip;
            extrapolated(dd(t), x, f, dd(to) - dd(t), columns, end, scale);
            slope(dd(to), end, f_end, s_end);
        }
        if (margin(s_end) < 0) {
            double low = t, high = to, before = std::max(margin(s), 1e-30), beyond = margin(s_end), last = beyond;
            for (int k = 0; k < 80 && high - low > 1e-12 * (to - t) && last < -1e-14; k++) {
                double share = before / (before - beyond), middle = k % 3 == 2 ? low + (high - low) / 2 : low + share * (high - low);
                extrapolated(dd(t), x, f, dd(middle) - dd(t), columns, end, scale);
                slope(dd(middle), end, f_end, s_end);
                if (margin(s_end) < 0) high = middle, last = beyond = margin(s_end), before /= 2;
                else low = middle, before = margin(s_end), beyond /= 2;
            }
            to = high;
            extrapolated(dd(t), x, f, dd(to) - dd(t), columns, end, scale);
            slope(dd(to), end, f_end, s_end);
            for (int k = 0; k < switches; k++) modes[k] = dd(s_end[k].hi > 0 ? 1.0 : 0.0);
            slope(dd(to), end, f_end, s_end);
        } else {
            h = (to - t) * std::min(2.0, factor);
        }
        x = end, f = f_end, s = s_end, t = to;
        grid[steps] = t;
        for (int k = 0; k < switches; k++) grid_modes[steps * switches + k] = modes[k].hi;
        steps++;
    }
    write(x, x0);
    return steps;
}

// LU decomposition in doubles of I - h A (x) J, for the simplified Newton iteration.
static void factorise(std::vector<double> &B, std::vector<int> &pivots, int size) {
    for (int k = 0; k < size; k++) {
        int p = k;
        for (int i = k + 1; i < size; i++)
            if (std::fabs(B[i * size + k]) > std::fabs(B[p * size + k])) p = i;
        pivots[k] = p;
        if (p != k)
            for (int j = 0; j < size; j++) std::swap(B[k * size + j], B[p * size + j]);
        for (int i = k + 1; i < size; i++) {
            double factor = B[i * size + k] /= B[k * size + k];
            if (factor != 0)
                for (int j = k + 1; j < size; j++) B[i * size + j] -= factor * B[k * size + j];
        }
    }
}
static void substitute(const std::vector<double> &B, const std::vector<int> &pivots, std::vector<double> &r, int size) {
    for (int k = 0; k < size; k++) std::swap(r[k], r[pivots[k]]);
    for (int i = 1; i < size; i++)
        for (int j = 0; j < i; j++) r[i] -= B[i * size + j] * r[j];
    for (int i = size - 1; i >= 0; i--) {
        for (int j = i + 1; j < size; j++) r[i] -= B[i * size + j] * r[j];
        r[i] /= B[i * size + i];
    }
}

// Over the given grid, each interval in equal steps, by the collocation method with the nodes c and the matrix A. Fixed-point
// iteration, or with `newton` the simplified Newton iteration, whose Jacobian is renewed in every step. Returns the most
// iterations of a step, -1 where they do not converge, or -2 where a stage is beyond a switch that the grid does not have.
int collocate(double *x0, double t0, const double *grid, const double *grid_modes, int intervals, int parts, int stages,
              const double *A_pairs, const double *b_pairs, const double *c_pairs, const double *P_pairs, int newton,
              double stop, const double *scale) {
    Vector A = read(A_pairs, stages * stages), b = read(b_pairs, stages), c = read(c_pairs, stages);
    Vector P = read(P_pairs, stages * (stages + 1));  // stages of the next step from (0, Z) of this one
    Vector x = read(x0, n), f(n), s(switches + 1), point(n);
    std::vector<Vector> Z(stages, Vector(n)), F(stages, Vector(n)), Y(stages, Vector(n));
    const int size = stages * n;
    std::vector<double> B, r(size);
    std::vector<int> pivots(size);
    int most = 0;
    double length = 0;
    dd t = dd(t0);
    for (int k = 0; k < intervals; k++) {
        dd h = (dd(grid[k]) - t) / dd(parts);
        for (int part = 0; part < parts; part++) {
            if (length == 0 || std::fabs(h.hi / length - 1) > 1e-9)
                for (auto &z : Z) std::fill(z.begin(), z.end(), dd());
            length = h.hi;
            if (newton) {
                std::vector<double> J(n * n);
                Vector moved = x, shifted(n);
                slope(t, x, f, s);
                for (int j = 0; j < n; j++) {
                    dd d = dd(1e-13 * (std::fabs(x[j].hi) + scale[j]));
                    moved[j] = x[j] + d;
                    slope(t, moved, shifted, s);
                    for (int i = 0; i < n; i++) J[i * n + j] = ((shifted[i] - f[i]) / d).hi;
                    moved[j] = x[j];
                }
                B.assign(size * size, 0.0);
                for (int i = 0; i < stages; i++)
                    for (int j = 0; j < stages; j++)
                        for (int p = 0; p < n; p++)
                            for (int q = 0; q < n; q++)
                                B[(i * n + p) * size + j * n + q] = (i == j && p == q) - h.hi * A[i * stages + j].hi * J[p * n + q];
                factorise(B, pivots, size);
            }
            double before = INFINITY, nearest;
            int iterations = 0;
            for (; iterations < 200; iterations++) {
                nearest = INFINITY;
                for (int i = 0; i < stages; i++) {
                    for (int p = 0; p < n; p++) point[p] = x[p] + Z[i][p];
                    slope(t + c[i] * h, point, F[i], s);
                    nearest = std::min(nearest, margin(s));
                }
                for (int i = 0; i < stages; i++)
                    for (int p = 0; p < n; p++) {
                        dd sum = dd();
                        for (int j = 0; j < stages; j++) sum += A[i * stages + j] * F[j][p];
                        Y[i][p] = h * sum - Z[i][p];
                        r[i * n + p] = Y[i][p].hi;
                    }
                if (newton) substitute(B, pivots, r, size);
                double change = 0;
                for (int i = 0; i < stages; i++)
                    for (int p = 0; p < n; p++) {
                        dd d = newton ? dd(r[i * n + p]) : Y[i][p];
                        Z[i][p] += d;
                        change = std::max(change, std::fabs(d.hi) / (std::fabs(x[p].hi) + scale[p]));
                    }
                if (change <= stop) break;
                if (iterations > 20 && !(change < before * 10)) return -1;
                before = change;
            }
            if (iterations == 200) return -1;
            if (nearest < -1e-9) return -2;
            most = std::max(most, iterations + 1);
            for (int p = 0; p < n; p++) {
                dd sum = dd();
                for (int j = 0; j < stages; j++) sum += b[j] * F[j][p];
                Y[0][p] = h * sum;
            }
            // predictor: the polynomial of this step, where the next one has its stages, less its value at the end
            std::vector<Vector> next(stages, Vector(n));
            for (int i = 0; i < stages; i++)
                for (int p = 0; p < n; p++) {
                    dd sum = dd();
                    for (int j = 0; j < stages; j++) sum += P[i * (stages + 1) + j + 1] * Z[j][p];
                    next[i][p] = sum - Y[0][p];
                }
            for (int p = 0; p < n; p++) x[p] += Y[0][p];
            Z = next;
            t = part == parts - 1 ? dd(grid[k]) : t + h;
        }
        for (int j = 0; j < switches; j++) modes[j] = dd(grid_modes[k * switches + j]);
    }
    write(x, x0);
    return most;
}
}

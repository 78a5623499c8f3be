// Double pendulum with the 3-stage Lobatto IIIA-IIIB method (L. Jay, SIAM J. Numer. Anal. 33, 1996), written by hand.
//
//     gcc -O3 -march=native -ffast-math -std=gnu11 -Wall double_pendulum.c -o double_pendulum -lm
//     ./double_pendulum STEPS H
//
// H = p.p/2 + g (q1 + q3), two rods of length 1 from the origin to (q0, q1) and from there to (q2, q3).
//
// Lanes. Nearly every number comes as a pair, one per rod: lane 0 belongs to a, the first mass, lane 1 to d = b - a, the
// second mass seen from the first. In (a, d) the constraints are |a| = 1 and |d| = 1, so gradients, residuals and curvatures
// are lane by lane; only the mass matrix couples the lanes:
//     dual(v)   = (2 v_a + v_d, v_a + v_d)     velocities (a, d) -> momenta conjugate to (a, d)
//     primal(f) = (f_a - f_d, 2 f_d - f_a)     its inverse
// A tension L along the rods' directions n acts as n L on the conjugate momenta, and U_q as (2 g, g) in y.
//
// Equations. The substitution of the explicit stage momenta leaves, with l_j = -h U_q - G^T(Q_j) L_j,
//     V_2 = p/2 + l_1/12 + l_2/24,   V_3 = p + l_1/6 + l_2/3,   p_1 = p + l_1/6 + 2 l_2/3 + l_3/6.
// Newton's iteration is invariant under linear combinations of the equations and affine changes of the unknowns. Used are
//     W_2 = V_2 - p/2,  W_3 = V_3 - p,  M_1 = L_1/12,  M_2 = L_2/24,  M_3 = L_3/6,
// which makes W_3 = 8 W_2 + h U_q/2 + 6 G^T(q) M_1 affine: W_3 is eliminated. L_3 enters the end condition only, and
// linearly: it is solved for once, after the iteration. Eight unknowns W_2, M_1, M_2 remain. Split along the rods and
// across them, the constraints at stage 2 give W_2 along the rods, the equation of W_2 along the rods gives M_2, and
// 4 x 4 are left: W_2 across the rods and M_1. Their inverse, in 2 x 2 blocks, is formed once a step.

#include <immintrin.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef double v2 __attribute__((vector_size(16)));
typedef long long v2i __attribute__((vector_size(16)));

#define INLINE static inline __attribute__((always_inline))
#define MAX_ITERATIONS 40

static const v2 TWO_ONE = {2.0, 1.0}, ONE_TWO = {1.0, 2.0};

INLINE v2 both(double x) { return (v2){x, x}; }
INLINE v2 swap(v2 v) { return __builtin_shuffle(v, (v2i){1, 0}); }
INLINE v2 dual(v2 v) { return TWO_ONE * v + swap(v); }
INLINE v2 primal(v2 f) { return ONE_TWO * f - swap(f); }
INLINE v2 root(v2 v) { return (v2)_mm_sqrt_pd((__m128d)v); }
INLINE double sum(v2 v) { return v[0] + v[1]; }
INLINE v2 relative(v2 ab) { return ab - __builtin_shuffle((v2){0.0, 0.0}, ab, (v2i){0, 2}); }  // (a, b) -> (a, d)
INLINE v2 absolute(v2 ad) { return ad + __builtin_shuffle((v2){0.0, 0.0}, ad, (v2i){0, 2}); }  // (a, d) -> (a, b)

// A 2 x 2 matrix: row i is (diagonal[i], other[i]), the other entry being in column 1 - i.
typedef struct { v2 diagonal, other; } m2;

INLINE v2 apply(m2 A, v2 x) { return A.diagonal * x + A.other * swap(x); }
INLINE m2 product(m2 A, m2 B) {
    return (m2){A.diagonal * B.diagonal + A.other * swap(B.other), A.diagonal * B.other + A.other * swap(B.diagonal)};
}

// G G^T M = r for unit rods with cosine c between them: the matrix is (1, -c; -c, 2).
INLINE v2 solve_normal(double c, v2 r) { return (TWO_ONE * r + c * swap(r)) * (1.0 / (2.0 - c * c)); }

// The compiler must not see through x: keeps -ffast-math from simplifying the compensated sum away.
INLINE v2 opaque(v2 x) {
    __asm__("" : "+x"(x));
    return x;
}

// sum += change (TwoSum); what rounding takes away goes to `lost`, and is given back by the next call.
INLINE void add_compensated(v2 *total, v2 *lost, v2 change) {
    v2 old = *total;
    change = opaque(change + *lost);
    v2 new = opaque(old + change), seen = opaque(new - old), kept = opaque(new - seen);
    *lost = opaque(old - kept) + opaque(change - seen);
    *total = new;
}

// `steps` steps from `state` = (q, p); every new state is a row of `store`. Returns the number of iterations, -1 on failure.
static long integrate(long steps, double h, double g, const double *state, double (*store)[8]) {
    // Positions and momenta of the masses, x and y apart, and what rounding took away from them
    v2 qx = {state[0], state[2]}, qy = {state[1], state[3]}, px = {state[4], state[6]}, py = {state[5], state[7]};
    v2 lost_qx = {0.0, 0.0}, lost_qy = lost_qx, lost_px = lost_qx, lost_py = lost_qx;
    const double per_h = 1.0 / h, tolerance = 0.1 * 2.220446049250313e-16;
    const v2 weight = h * g * TWO_ONE, w3_constant = {0.5 * h * g, 0.0};
    double last_rate = 1.0;  // squared, as all measures of convergence here
    long iterations = 0;

    v2 ex = relative(qx), ey = relative(qy), vx = relative(px), vy = relative(py);
    // First guess: constant acceleration and multipliers
    v2 lambda = solve_normal(sum(ex * swap(ex) + ey * swap(ey)) * 0.5, vx * vx + vy * vy - ey * (v2){g, 0.0});
    v2 ax = primal(-ex * lambda), ay = primal(-ey * lambda) - (v2){g, 0.0};
    v2 w2x = h / 8 * ax, w2y = h / 8 * ay, w3x = h / 2 * ax, w3y = h / 2 * ay;
    v2 m1 = h / 12 * lambda, m2_ = h / 24 * lambda;
    v2 v2x = 0.5 * vx + w2x, v2y = 0.5 * vy + w2y, v3x = vx + w3x, v3y = vy + w3y;

    for (long step = 0; step < steps; step++) {
        // e: directions of the rods at the start (of length 1, as the last step solved |a| = |d| = 1); v: velocities
        const v2 start2x = ex + 0.5 * h * vx, start2y = ey + 0.5 * h * vy, start3x = ex + h * vx, start3y = ey + h * vy;
        v2 x2 = ex + h * v2x, y2 = ey + h * v2y, x3 = ex + h * v3x, y3 = ey + h * v3y;
        const double per_size = 1.0 / sum(v2x * dual(v2x) + v2y * dual(v2y) + v3x * dual(v3x) + v3y * dual(v3y));
        // W_3 = 8 W_2 + w3_constant + primal(e 6 M_1); `defect`: the guess does not satisfy it
        const v2 e1x = 6.0 * ONE_TWO * ex, e2x = -6.0 * swap(ex), e1y = 6.0 * ONE_TWO * ey, e2y = -6.0 * swap(ey);
        const v2 defect_x = w3x - 8.0 * w2x - e1x * m1 - e2x * swap(m1);
        const v2 defect_y = w3y - 8.0 * w2y - w3_constant - e1y * m1 - e2y * swap(m1);

        // Jacobian at the guess: n, k are the directions of the rods at stages 2 and 3
        v2 s2 = x2 * x2 + y2 * y2, s3 = x3 * x3 + y3 * y3, r2 = root(s2), r3 = root(s3);
        v2 per_r2 = r2 * (1.0 / s2), per_r3 = r3 * (1.0 / s3);
        const v2 nx = x2 * per_r2, ny = y2 * per_r2, kx = x3 * per_r3, ky = y3 * per_r3;
        const double cosine = nx[0] * nx[1] + ny[0] * ny[1], sine = nx[0] * ny[1] - ny[0] * nx[1];
        const v2 sines = {-sine, sine};
        const v2 n_e = nx * ex + ny * ey, t_e = nx * ey - ny * ex, k_n = 8.0 / 6.0 * (kx * nx + ky * ny);
        const v2 k_t = 8.0 / 6.0 * (ky * nx - kx * ny);
        // across the rods:   A z + t_e l = rho,   k_t z + D l = gamma,   z = dW_2 across, l = dM_1
        const v2 a = TWO_ONE + h * m2_ * per_r2;
        const double per_det = 1.0 / (a[0] * a[1] - cosine * cosine);
        const m2 A_inv = {swap(a) * per_det, both(-cosine * per_det)};
        const m2 k_A = {k_t * A_inv.diagonal, k_t * A_inv.other}, A_e = {A_inv.diagonal * t_e, A_inv.other * swap(t_e)};
        const v2 d = ONE_TWO * (kx * ex + ky * ey) - k_A.diagonal * t_e;
        const v2 o = -(kx * swap(ex) + ky * swap(ey)) - k_A.other * swap(t_e);
        const double per_schur = 1.0 / (d[0] * d[1] - o[0] * o[1]);
        const m2 l_gamma = {swap(d) * per_schur, -o * per_schur};
        const m2 minus_l_rho = product(l_gamma, k_A), minus_z_gamma = product(A_e, l_gamma);
        m2 z_rho = product(A_e, minus_l_rho);
        z_rho.diagonal += A_inv.diagonal;
        z_rho.other += A_inv.other;

        v2 correction = (kx * defect_x + ky * defect_y) * (1.0 / 6.0);
        double rate = 1.0, per_previous = 0.0;
        for (int k = 1;; k++) {
            // Residuals, minus signs included: `along` and `gamma` of the constraints, f of the equation of W_2
            const v2 along = per_h - per_h * r2;
            const v2 gamma = per_h / 6.0 - per_h / 6.0 * r3 - k_n * along + correction;
            const v2 fx = -dual(w2x) - ex * m1, fy = -0.125 * weight - dual(w2y) - ey * m1;
            const v2 tension = m2_ * per_r2;
            const v2 rho = (nx * fy - ny * fx) + sines * swap(along) - tension * (nx * y2 - ny * x2);
            const v2 f_n = (nx * fx + ny * fy) - dual(along) - (cosine - 1.0) * swap(along) - tension * (nx * x2 + ny * y2);
            const v2 z = apply(z_rho, rho) - apply(minus_z_gamma, gamma);
            const v2 l = apply(l_gamma, gamma) - apply(minus_l_rho, rho);
            m1 += l;
            m2_ += f_n - sines * swap(z) - n_e * l;
            const v2 dx = along * nx - z * ny, dy = along * ny + z * nx;
            w2x += dx;
            w2y += dy;
            const v2 new_x = 8.0 * w2x + e1x * m1 + e2x * swap(m1), d3x = new_x - w3x;
            const v2 new_y = w3_constant + 8.0 * w2y + e1y * m1 + e2y * swap(m1), d3y = new_y - w3y;
            w3x = new_x;
            w3y = new_y;
            x2 = start2x + h * w2x;
            y2 = start2y + h * w2y;
            x3 = start3x + h * w3x;
            y3 = start3y + h * w3y;

            // Stop when the next increment, about rate times this one, is lost in round-off
            const double e = per_size * sum(dx * dual(dx) + dy * dual(dy) + d3x * dual(d3x) + d3y * dual(d3y));
            const double ratio = e * per_previous;
            if (k > 1) rate = fmin(rate, ratio);
            if (e * (k > 1 ? rate : fmin(1.0, 100.0 * last_rate)) <= tolerance * tolerance || (ratio >= 0.25 && e <= 1e-20)) {
                if (k > 1) last_rate = rate;
                iterations += k;
                break;
            }
            if (k == MAX_ITERATIONS) return -1;
            per_previous = 1.0 / e;
            correction = both(0.0);
            s2 = x2 * x2 + y2 * y2;
            s3 = x3 * x3 + y3 * y3;
            r2 = root(s2);
            r3 = root(s3);
            per_r2 = r2 * (1.0 / s2);
        }

        // The directions of the rods are now (x2, y2), (x3, y3). Momentum without, then with, the reaction at the end
        v2 lx = -2.0 * ex * m1 - 16.0 * x2 * m2_, ly = -weight - 2.0 * ey * m1 - 16.0 * y2 * m2_;
        const double c3 = x3[0] * x3[1] + y3[0] * y3[1];
        const v2 m3 = solve_normal(c3, x3 * (vx + primal(lx)) + y3 * (vy + primal(ly)));
        lx -= x3 * m3;
        ly -= y3 * m3;
        add_compensated(&qx, &lost_qx, h * absolute(vx + w3x));
        add_compensated(&qy, &lost_qy, h * absolute(vy + w3y));
        const v2 dpx = primal(lx), dpy = primal(ly);
        add_compensated(&px, &lost_px, absolute(dpx));
        add_compensated(&py, &lost_py, absolute(dpy));
        double *row = store[step];
        row[0] = qx[0], row[1] = qy[0], row[2] = qx[1], row[3] = qy[1];
        row[4] = px[0], row[5] = py[0], row[6] = px[1], row[7] = py[1];

        // Predictor: the polynomials of this step continued, -3 V_2 + 2 V_3 and so on
        v2x = 0.5 * vx - 3.0 * w2x + 2.0 * w3x, v2y = 0.5 * vy - 3.0 * w2y + 2.0 * w3y;
        v3x = vx - 8.0 * w2x + 5.0 * w3x, v3y = vy - 8.0 * w2y + 5.0 * w3y;
        ex = relative(qx), ey = relative(qy), vx = relative(px), vy = relative(py);
        w2x = v2x - 0.5 * vx, w2y = v2y - 0.5 * vy, w3x = v3x - vx, w3y = v3y - vy;
        m2_ = 0.5 * m1 - 3.0 * m2_ + 0.75 * m3;
        m1 = 0.5 * m3;
    }
    return iterations;
}

static double energy(const double *s, double g) {
    return 0.5 * (s[4] * s[4] + s[5] * s[5] + s[6] * s[6] + s[7] * s[7]) + g * (s[1] + s[3]);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s STEPS H\n", argv[0]);
        return 2;
    }
    const long steps = atol(argv[1]);
    const double h = atof(argv[2]), g = 1.0;
    const double start[8] = {0.5, -sqrt(0.75), 0.0, -2.0 * sqrt(0.75)};
    double(*store)[8] = malloc((size_t)(steps > 0 ? steps : 1) * sizeof *store);
    if (steps < 1 || !store) {
        fprintf(stderr, "STEPS must be positive, and the states must fit into memory\n");
        return 2;
    }
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    const long iterations = integrate(steps, h, g, start, store);
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (iterations < 0) {
        fprintf(stderr, "the iteration did not converge\n");
        return 1;
    }
    double energy_error = 0.0, constraint = 0.0, hidden = 0.0;
    for (long i = 0; i < steps; i++) {
        const double *s = store[i], dx = s[2] - s[0], dy = s[3] - s[1], ra = hypot(s[0], s[1]), rd = hypot(dx, dy);
        energy_error = fmax(energy_error, fabs(energy(s, g) - energy(start, g)));
        constraint = fmax(constraint, fmax(fabs(ra - 1.0), fabs(rd - 1.0)));
        hidden = fmax(hidden, fabs(s[0] * s[4] + s[1] * s[5]) / ra);
        hidden = fmax(hidden, fabs(dx * (s[6] - s[4]) + dy * (s[7] - s[5])) / rd);
    }
    const double *q = store[steps - 1];
    printf("{\"us_per_step\": %.4f, \"iterations_per_step\": %.3f, \"energy_error\": %.4e, \"constraint\": %.2e, "
           "\"hidden\": %.2e, \"q\": [%.16g, %.16g, %.16g, %.16g]}\n",
           1e6 * (double)(end.tv_sec - begin.tv_sec) / (double)steps + 1e-3 * (double)(end.tv_nsec - begin.tv_nsec) / (double)steps,
           (double)iterations / (double)steps, energy_error, constraint, hidden, q[0], q[1], q[2], q[3]);
    return 0;
}

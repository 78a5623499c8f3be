// Double pendulum with the 3-stage Lobatto IIIA-IIIB method (L. Jay, SIAM J. Numer. Anal. 33, 1996), specialised by hand: what
// analysis of this one problem buys. Relative coordinates, unit masses and lengths and an elimination that hold for nothing
// else: a lower bound. The baseline for `da.simulate`, in its coordinates and unknowns, is double_pendulum_plain.c.
//
//     gcc -O3 -march=native -ffast-math -std=gnu11 -Wall double_pendulum_specialised.c -o double_pendulum_specialised -lm
//     ./double_pendulum_specialised STEPS H [G]
//
// H = p.p/2 + g (q1 + q3); two rods of length 1, from the origin to mass a = (q0, q1) and from there to mass b = (q2, q3).
//
// Lanes. Every number comes as a pair, one per rod: lane 0 belongs to a, lane 1 to d = b - a. In (a, d) the constraints are
// |a| = 1 and |d| = 1, so directions, constraints and curvatures are lane by lane; only the mass matrix couples the lanes:
//     dual(v) = (2 v_a + v_d, v_a + v_d)      velocities of (a, d) -> momenta conjugate to (a, d)
//     primal(f) = (f_a - f_d, 2 f_d - f_a)    its inverse
// As a force on these momenta, tensions L along unit vectors n are n L, lane by lane, and the weight is (2 g, g).
//
// Equations. With the stage momenta substituted and hl_j = -h U_q - G^T(Q_j) L_j,
//     V_2 = p/2 + hl_1/12 + hl_2/24,   V_3 = p + hl_1/6 + hl_2/3,   p_1 = p + hl_1/6 + 2/3 hl_2 + hl_3/6.
// Newton's iteration does not change under linear combinations of equations and affine changes of unknowns. The unknowns here:
//     w_2 = h (V_2 - p/2),   w_3 = h (V_3 - p),   mu_1 = h L_1/12,   mu_2 = h L_2/24,   mu_3 = h L_3/6
// with the equations, e, n being the directions of the rods at the start and at stage 2,
//     0 = dual(w_2) + h^2 weight/8 + e mu_1 + n mu_2,   |Q_2| = |Q_3| = 1,
//     w_3 = 8 w_2 + h^2 U_q/2 + primal(6 e mu_1),
// where w_3, being affine, is eliminated. L_3 enters the end condition only, linearly: it is solved for after the iteration.
// Of the other eight, the constraints at stage 2 give w_2 along the rods, and the first equation along the rods gives mu_2:
// 4 x 4 are left, w_2 across the rods and mu_1. Their inverse, in 2 x 2 blocks, is formed once a step.

#include <immintrin.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MAX_ITERATIONS 40
#define ROUND_OFF 2.220446049250313e-16
#define INLINE static inline __attribute__((always_inline))

typedef double v2 __attribute__((vector_size(16)));
typedef long long v2i __attribute__((vector_size(16)));
typedef struct { v2 diagonal, other; } mat;  // 2 x 2; row i is diagonal[i] in column i, other[i] in column 1 - i

static const v2 TWO_ONE = {2.0, 1.0}, ONE_TWO = {1.0, 2.0}, ZERO = {0.0, 0.0};

INLINE v2 swap(v2 v) { return __builtin_shuffle(v, (v2i){1, 0}); }
INLINE v2 dual(v2 v) { return TWO_ONE * v + swap(v); }
INLINE v2 primal(v2 f) { return ONE_TWO * f - swap(f); }
INLINE v2 to_relative(v2 ab) { return ab - __builtin_shuffle(ZERO, ab, (v2i){0, 2}); }  // (a, b) -> (a, d)
INLINE v2 to_absolute(v2 ad) { return ad + __builtin_shuffle(ZERO, ad, (v2i){0, 2}); }  // (a, d) -> (a, b)
INLINE double least(double a, double b) { return a < b ? a : b; }
INLINE double most(double a, double b) { return a > b ? a : b; }
INLINE double total(v2 v) { return v[0] + v[1]; }
INLINE v2 root(v2 v) { return (v2)_mm_sqrt_pd((__m128d)v); }

// a b + c and c - a b. With these the order of operations is written out where the iteration waits for results; the compiler
// would choose other orders, with as many instructions, but a longer chain of them.
INLINE v2 madd(v2 a, v2 b, v2 c) { return (v2)_mm_fmadd_pd((__m128d)a, (__m128d)b, (__m128d)c); }
INLINE v2 nmadd(v2 a, v2 b, v2 c) { return (v2)_mm_fnmadd_pd((__m128d)a, (__m128d)b, (__m128d)c); }

INLINE v2 apply(mat A, v2 x) { return madd(A.other, swap(x), A.diagonal * x); }
INLINE v2 apply_add(mat A, v2 x, v2 y) { return madd(A.other, swap(x), madd(A.diagonal, x, y)); }
INLINE mat scale(v2 rows, mat A) { return (mat){rows * A.diagonal, rows * A.other}; }
INLINE mat add(mat A, mat B) { return (mat){A.diagonal + B.diagonal, A.other + B.other}; }
INLINE mat product(mat A, mat B) {
    return (mat){A.diagonal * B.diagonal + A.other * swap(B.other), A.diagonal * B.other + A.other * swap(B.diagonal)};
}

// 1 - r, given r and r^2 - 1. The plain difference is biased, as there are twice as many numbers below 1 as above, and energy
// drifts by a few 1e-18 a step; (1 - r)^2/2 - (r^2 - 1)/2 is accurate to the last digits of r^2 - 1.
INLINE v2 shortfall(v2 r, v2 excess) { return madd(0.5 - 0.5 * r, 1.0 - r, -0.5 * excess); }

// (G G^T) x = r for rods of length 1 with directions e
INLINE v2 solve_normal(v2 ex, v2 ey, v2 r) {
    const v2 cosine = ex * swap(ex) + ey * swap(ey);
    return (TWO_ONE * r + cosine * swap(r)) * (1.0 / (2.0 - cosine * cosine));
}

// The compiler cannot see through x: this keeps -ffast-math from simplifying a compensated sum. It is no instruction.
INLINE v2 opaque(v2 x) {
    __asm__("" : "+x"(x));
    return x;
}

// sum += change (TwoSum); what rounding takes away is given back by the next call.
INLINE void add_compensated(v2 *sum, v2 *lost, v2 change) {
    const v2 old = *sum, full = opaque(change + *lost), new = opaque(old + full), seen = opaque(new - old);
    *lost = opaque(old - opaque(new - seen)) + opaque(full - seen);
    *sum = new;
}

// `steps` steps from `state` = (q, p); every new state is a row of `store`. Returns the number of iterations, -1 on failure.
static long integrate(long steps, double h, double g, const double *state, double (*store)[8]) {
    v2 qx = {state[0], state[2]}, qy = {state[1], state[3]}, px = {state[4], state[6]}, py = {state[5], state[7]};
    v2 lost_qx = ZERO, lost_qy = ZERO, lost_px = ZERO, lost_py = ZERO;
    const v2 weight = h * h * g * TWO_ONE, fall = {0.5 * h * h * g, 0.0};
    const double per_h = 1.0 / h, tolerance = 0.1 * ROUND_OFF;
    double last_rate = 1.0;  // of convergence; squared, as are all norms and rates here
    long iterations = 0;

    // e: directions of the rods, v = h p, u_i = h V_i. First guess: constant acceleration and multipliers
    v2 ex = to_relative(qx), ey = to_relative(qy), vx = h * to_relative(px), vy = h * to_relative(py);
    const v2 lambda = solve_normal(ex, ey, vx * vx + vy * vy - 2.0 * fall * ey);
    v2 mu1 = lambda / 12.0, mu2 = lambda / 24.0;
    v2 w3x = primal(-0.5 * lambda * ex), w3y = primal(-0.5 * lambda * ey) - fall, w2x = 0.25 * w3x, w2y = 0.25 * w3y;
    v2 u2x = 0.5 * vx + w2x, u2y = 0.5 * vy + w2y, u3x = vx + w3x, u3y = vy + w3y;

    for (long step = 0; step < steps; step++) {
        // Directions at the guess: n at stage 2, k at stage 3; t and k' are n and k turned by a right angle
        const v2 x2 = ex + u2x, y2 = ey + u2y, x3 = ex + u3x, y3 = ey + u3y;
        v2 s2 = x2 * x2 + y2 * y2, s3 = x3 * x3 + y3 * y3, r2 = root(s2), r3 = root(s3);
        v2 per_r2 = r2 * (1.0 / s2);  // the division does not wait for the root
        const v2 per_r3 = r3 * (1.0 / s3);
        const v2 nx = x2 * per_r2, ny = y2 * per_r2, kx = x3 * per_r3, ky = y3 * per_r3;
        const v2 n_e = nx * ex + ny * ey, t_e = nx * ey - ny * ex;
        const v2 k_n = 8.0 * (kx * nx + ky * ny), k_t = 8.0 * (ky * nx - kx * ny);
        const mat k_e = {6.0 * ONE_TWO * (kx * ex + ky * ey), -6.0 * (kx * swap(ex) + ky * swap(ey))};
        const mat k1_e = {6.0 * ONE_TWO * (kx * ey - ky * ex), -6.0 * (kx * swap(ey) - ky * swap(ex))};
        const v2 cosine = nx * swap(nx) + ny * swap(ny), sines = ny * swap(nx) - nx * swap(ny);  // of one rod with the other

        // The Jacobian across the rods, for z = dw_2 across and l = dmu_1:   A z + t_e l = rho,   k_t z + k_e l = gamma.
        // Its inverse by adjoints and determinants, so that the two divisions and the products do not wait for each other
        const v2 curvature = mu2 * per_r2, a = TWO_ONE + curvature, det_A = a * swap(a) - cosine * cosine;
        const mat adj_A = {swap(a), -cosine}, K = scale(k_t, adj_A), E = {-swap(a) * t_e, cosine * swap(t_e)};
        const v2 d = det_A * k_e.diagonal - K.diagonal * t_e, o = det_A * k_e.other - K.other * swap(t_e);
        const mat adj = {swap(d), -o}, E_adj = product(E, adj);
        const v2 per_det = 1.0 / (d * swap(d) - o * swap(o));
        const mat l_gamma = scale(per_det * det_A, adj), l_rho = scale(-per_det, product(adj, K));
        const mat z_gamma = scale(per_det, E_adj), z_rho = scale(1.0 / det_A, add(adj_A, scale(-per_det, product(E_adj, K))));
        // Q_3 across k, straight from rho and gamma
        const mat t_gamma = add(scale(k_n, z_gamma), product(k1_e, l_gamma));
        const mat t_rho = add(scale(k_n, z_rho), product(k1_e, l_rho));

        // f: minus the equation of w_2 without n mu_2, along n and t. `defect`: the guess of w_3 does not satisfy its equation
        const v2 fx = dual(w2x) + ex * mu1, fy = dual(w2y) + ey * mu1 + 0.125 * weight;
        v2 f_n = -(nx * fx + ny * fy), f_t = ny * fx - nx * fy;
        const v2 defect_x = w3x - 8.0 * w2x - primal(6.0 * mu1 * ex), dual_x = dual(defect_x);
        const v2 defect_y = w3y - 8.0 * w2y - primal(6.0 * mu1 * ey) - fall, dual_y = dual(defect_y);

        // Q_2 = (1 + n2) n + t2 t,   Q_3 - defect = (1 + n3) k + t3 k'.   The gaps are what the rods lack in length.
        v2 gap2 = shortfall(r2, s2 - 1.0), gap3 = shortfall(r3, s3 - 1.0) + kx * defect_x + ky * defect_y;
        v2 n2 = -gap2, t2 = ZERO, n3 = -gap3, t3 = ky * defect_x - kx * defect_y;
        const v2 first_gap2 = gap2, e_e = ex * swap(ex) + ey * swap(ey);
        const double size = total(u2x * dual(u2x) + u2y * dual(u2y) + u3x * dual(u3x) + u3y * dual(u3y));
        const double enough = tolerance * tolerance * size;
        double previous = 0.0, stagnant = 0.0, rate = 1.0, assumed_rate = least(1.0, 100.0 * last_rate);
        for (int count = 1;; count++) {
            const v2 pull = per_r2 * (mu2 * t2), gamma = nmadd(k_n, gap2, gap3);
            const v2 f_rest = nmadd(per_r2, mu2 * t2, f_t), rho = madd(sines, swap(gap2), f_rest);
            const v2 z = apply_add(z_rho, rho, apply(z_gamma, gamma));
            const v2 l = apply_add(l_rho, rho, apply(l_gamma, gamma));
            t3 = apply_add(t_rho, rho, apply_add(t_gamma, gamma, nmadd(k_t, gap2, t3)));
            t2 += z;
            // |dV_2|^2 + |dV_3|^2 from dw_2 = gap2 n + z t and dw_3 = 8 dw_2 + primal(6 e l), minus the defect at first
            const v2 dual_n = TWO_ONE * gap2 + cosine * swap(gap2) + sines * swap(z), dual_t = f_rest - curvature * z - t_e * l;
            v2 square = 65.0 * (gap2 * dual_n + z * dual_t)
                        + l * (96.0 * (gap2 * n_e + z * t_e) + 36.0 * (ONE_TWO * l - e_e * swap(l)));
            if (count == 1)
                square += dual_x * (defect_x - 16.0 * (gap2 * nx - z * ny)) + dual_y * (defect_y - 16.0 * (gap2 * ny + z * nx))
                          - 12.0 * l * (ex * defect_x + ey * defect_y);
            // An iteration solves the linear equations exactly. So f needs no new evaluation across the rods, where only mu_2's
            // change of direction remains, and the rods' lengths along n and k grow by just the gaps.
            f_n -= dual_n + n_e * l;
            f_t = pull + curvature * z;
            mu2 += f_n - per_r2 * (mu2 + mu2 * n2);
            mu1 += l;
            n2 += gap2;
            n3 += gap3;

            // The next increment is expected to be `rate` times this one; stop if it is lost in round-off
            const double e = total(square);
            const int done = (e * assumed_rate <= enough) | (e * e <= enough * previous)
                             | ((e <= stagnant) & (e >= 0.25 * previous));
            // An increment below round-off says nothing about the rate: counted, it could let all later steps stop at once
            if (count > 1) rate = least(rate, most(e, ROUND_OFF * ROUND_OFF * size) / previous);
            if (done) {
                if (count > 1) last_rate = rate;
                iterations += count;
                break;
            }
            if (count == MAX_ITERATIONS) return -1;
            assumed_rate = rate;
            previous = e;
            stagnant = 1e-20 * size;

            const v2 excess2 = madd(t2, t2, n2 * (2.0 + n2)), excess3 = madd(t3, t3, n3 * (2.0 + n3));
            s2 = madd(t2, t2, (1.0 + n2) * (1.0 + n2));
            s3 = madd(t3, t3, (1.0 + n3) * (1.0 + n3));
            r2 = root(s2);
            r3 = root(s3);
            per_r2 = r2 * (1.0 / s2);
            gap2 = shortfall(r2, excess2);
            gap3 = shortfall(r3, excess3);
        }

        const v2 along = n2 + first_gap2, dx = along * nx - t2 * ny, dy = along * ny + t2 * nx;
        w2x += dx;
        w2y += dy;
        w3x = 8.0 * w2x + primal(6.0 * mu1 * ex);
        w3y = 8.0 * w2y + primal(6.0 * mu1 * ey) + fall;
        add_compensated(&qx, &lost_qx, to_absolute(vx + w3x));
        add_compensated(&qy, &lost_qy, to_absolute(vy + w3y));

        // h times the change of momentum, without and with the tension at the end; the rods have length 1 at the stages now
        v2 fx1 = -2.0 * mu1 * ex - 16.0 * mu2 * (x2 + dx), fy1 = -2.0 * mu1 * ey - 16.0 * mu2 * (y2 + dy) - weight;
        ex = to_relative(qx);
        ey = to_relative(qy);
        const v2 mu3 = solve_normal(ex, ey, ex * (vx + primal(fx1)) + ey * (vy + primal(fy1)));
        fx1 -= mu3 * ex;
        fy1 -= mu3 * ey;
        add_compensated(&px, &lost_px, per_h * to_absolute(primal(fx1)));
        add_compensated(&py, &lost_py, per_h * to_absolute(primal(fy1)));
        double *row = store[step];
        row[0] = qx[0], row[1] = qy[0], row[2] = qx[1], row[3] = qy[1];
        row[4] = px[0], row[5] = py[0], row[6] = px[1], row[7] = py[1];

        // Guess: the polynomials through this step's stages, continued. V: -3 V_2 + 2 V_3 and -8 V_2 + 5 V_3
        u2x = 0.5 * vx - 3.0 * w2x + 2.0 * w3x, u2y = 0.5 * vy - 3.0 * w2y + 2.0 * w3y;
        u3x = vx - 8.0 * w2x + 5.0 * w3x, u3y = vy - 8.0 * w2y + 5.0 * w3y;
        vx = h * to_relative(px), vy = h * to_relative(py);
        w2x = u2x - 0.5 * vx, w2y = u2y - 0.5 * vy, w3x = u3x - vx, w3y = u3y - vy;
        mu2 = 0.5 * mu1 - 3.0 * mu2 + 0.75 * mu3;
        mu1 = 0.5 * mu3;
    }
    return iterations;
}

static double energy(const double *s, double g) {
    return 0.5 * (s[4] * s[4] + s[5] * s[5] + s[6] * s[6] + s[7] * s[7]) + g * (s[1] + s[3]);
}

int main(int argc, char **argv) {
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: %s STEPS H [G]\n", argv[0]);
        return 2;
    }
    const long steps = atol(argv[1]);
    const double h = atof(argv[2]), g = argc > 3 ? atof(argv[3]) : 1.0;
    const double start[8] = {0.5, -sqrt(0.75), 0.0, -2.0 * sqrt(0.75)};
    double(*store)[8] = malloc((size_t)(steps > 0 ? steps : 1) * sizeof *store);
    if (steps < 1 || !store) {
        fprintf(stderr, "STEPS must be positive, and the states must fit into memory\n");
        return 2;
    }
    struct timespec begin, end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    const long iterations = integrate(steps, h, g, start, store);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
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
    const double us = 1e6 * (double)(end.tv_sec - begin.tv_sec) + 1e-3 * (double)(end.tv_nsec - begin.tv_nsec);
    printf("{\"us_per_step\": %.4f, \"iterations_per_step\": %.3f, \"energy_error\": %.4e, \"constraint\": %.2e, "
           "\"hidden\": %.2e, \"q\": [%.16g, %.16g, %.16g, %.16g]}\n",
           us / (double)steps, (double)iterations / (double)steps, energy_error, constraint, hidden, q[0], q[1], q[2], q[3]);
    free(store);
    return 0;
}

// Double pendulum with the 3-stage Lobatto IIIA-IIIB method (L. Jay, SIAM J. Numer. Anal. 33, 1996), written by hand: the
// baseline for `da.simulate`. The same algorithm in the same coordinates, unknowns and stopping rule, nothing more clever.
// With -DCORRECTED its first guesses are those of `da.simulate`, too, instead of the polynomials through the last step's stages.
//
//     gcc -O3 -march=native -std=gnu11 -Wall double_pendulum_plain.c -o double_pendulum_plain -lm       (also -ffast-math)
//     ./double_pendulum_plain STEPS H [G]
//
// q = (x1, z1, x2, z2),   H = p.p/(2m) + g (m1 z1 + m2 z2),   0 = |a| - l1 = |b - a| - l2 with a = (x1, z1), b = (x2, z2)
//
// Unknowns: V_2 = (Q_2 - q)/h and L_j = h Lambda_j for j = 1, 2. The stage momenta are substituted, and V_3, which the other
// unknowns give explicitly; L_3 is found after the iteration. With the products of the two coefficient matrices,
// N_j = g_q(Q_j) and a_j = h U_q + N_j^T L_j, which is h times the force with the opposite sign,
//     V_2 = M^-1 (p/2 - a_1/12 - a_2/24),   V_3 = M^-1 (p - a_1/6 - a_2/3) = 8 V_2 - M^-1 (3 p - a_1/2),   g(Q_2) = g(Q_3) = 0.
// Newton's equations, with the residuals r = M V_2 - (p/2 - a_1/12 - a_2/24), c_2 = g(Q_2)/h, c_3 = g(Q_3)/h and the matrix
// B = M + (h/24) (N^T L_2)_q at Q_2, are
//     B dV_2 + N_2^T dL_2/24 = -r - N_1^T dL_1/12,   N_2 dV_2 = -c_2,   8 N_3 dV_2 + (N_3 M^-1 N_1^T/2) dL_1 = -c_3.
// The first two have a symmetric matrix, whose inverse ((P, E), (E^T, -S)) is formed once a step at the guess, in blocks of
// 2 x 2 and without pivoting; the two numbers of dL_1 remain. Residuals are evaluated anew in every iteration.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

// Sizes of increments and rates of convergence are squared, as in dalembert/engine/_driver.py.
#define MAX_ITERATIONS 40
#define EPSILON 2.220446049250313e-16
#define ROUND_OFF (0.5 * EPSILON * 0.5 * EPSILON)
#define NOISE (80.0 * EPSILON * 80.0 * EPSILON)
#define STAGNATION 1e-20
#define SMALL 1e-26
#define FAST 1e-2
#define FASTEST 1e-16
#define FASTEST_GUESS 1e-10
#define NONE 1e300

#define INLINE static inline __attribute__((always_inline))
#define EACH(i, n) _Pragma("GCC unroll 8") for (int i = 0; i < (n); i++)

typedef struct { double m1, m2, l1, l2, g; } parameters;
typedef struct { double r[2], per_r[2], N[2][4]; } rods;  // lengths, their reciprocals, and the Jacobian of the lengths

INLINE double least(double a, double b) { return a < b ? a : b; }
INLINE double most(double a, double b) { return a > b ? a : b; }
INLINE double dot(const double *a, const double *b) { return (a[0] * b[0] + a[1] * b[1]) + (a[2] * b[2] + a[3] * b[3]); }

// The rods at q + h V
INLINE rods rods_at(const double *q, double h, const double *V) {
    double Q[4];
    EACH(k, 4) Q[k] = q[k] + h * V[k];
    const double d[2][2] = {{Q[0], Q[1]}, {Q[2] - Q[0], Q[3] - Q[1]}};
    rods at = {0};
    EACH(i, 2) {
        const double square = d[i][0] * d[i][0] + d[i][1] * d[i][1];
        at.r[i] = sqrt(square);
        at.per_r[i] = at.r[i] * (1.0 / square);  // the division does not wait for the root
    }
    EACH(k, 2) {
        at.N[0][k] = d[0][k] * at.per_r[0];
        at.N[1][2 + k] = d[1][k] * at.per_r[1];
        at.N[1][k] = -at.N[1][2 + k];
    }
    return at;
}

// B = M + scale (N^T L)_q
INLINE void tangent_mass(const rods *at, const double *m, const double *L, double scale, double B[4][4]) {
    double c[2][2][2];
    EACH(i, 2) {
        const double a = scale * L[i] * at->per_r[i], x = at->N[i][2 * i], z = at->N[i][2 * i + 1];
        c[i][0][0] = a * z * z, c[i][1][1] = a * x * x, c[i][0][1] = c[i][1][0] = -a * x * z;
    }
    EACH(i, 2) EACH(j, 2) {
        B[i][j] = c[0][i][j] + c[1][i][j];
        B[2 + i][2 + j] = c[1][i][j];
        B[i][2 + j] = B[2 + j][i] = -c[1][i][j];
    }
    EACH(k, 4) B[k][k] += m[k];
}

// N v for a vector, N X for a matrix, and N^T l. The first rod does not touch the second mass.
INLINE void times(const double N[2][4], const double *v, double *out) {
    out[0] = N[0][0] * v[0] + N[0][1] * v[1];
    out[1] = N[1][2] * (v[2] - v[0]) + N[1][3] * (v[3] - v[1]);
}
INLINE void times_matrix(const double N[2][4], double X[4][4], double out[2][4]) {
    EACH(k, 4) {
        out[0][k] = N[0][0] * X[0][k] + N[0][1] * X[1][k];
        out[1][k] = N[1][2] * (X[2][k] - X[0][k]) + N[1][3] * (X[3][k] - X[1][k]);
    }
}
INLINE void transposed(const double N[2][4], const double *l, double *out) {
    EACH(k, 4) out[k] = N[0][k] * l[0] + N[1][k] * l[1];
}

INLINE void inverse2(double A[2][2], double out[2][2]) {
    const double per_det = 1.0 / (A[0][0] * A[1][1] - A[0][1] * A[1][0]);
    out[0][0] = A[1][1] * per_det, out[1][1] = A[0][0] * per_det;
    out[0][1] = -A[0][1] * per_det, out[1][0] = -A[1][0] * per_det;
}

// Of a symmetric matrix, in blocks of 2 x 2
INLINE void inverse4(double A[4][4], double out[4][4]) {
    double first[2][2] = {{A[0][0], A[0][1]}, {A[1][0], A[1][1]}}, p[2][2], e[2][2], rest[2][2], s[2][2], f[2][2];
    inverse2(first, p);
    EACH(i, 2) EACH(j, 2) e[i][j] = p[i][0] * A[0][2 + j] + p[i][1] * A[1][2 + j];
    EACH(i, 2) EACH(j, 2) rest[i][j] = A[2 + i][2 + j] - (A[0][2 + i] * e[0][j] + A[1][2 + i] * e[1][j]);
    inverse2(rest, s);
    EACH(i, 2) EACH(j, 2) f[i][j] = e[i][0] * s[0][j] + e[i][1] * s[1][j];
    EACH(i, 2) EACH(j, 2) {
        out[i][j] = p[i][j] + f[i][0] * e[j][0] + f[i][1] * e[j][1];
        out[i][2 + j] = out[2 + j][i] = -f[i][j];
        out[2 + i][2 + j] = s[i][j];
    }
}

// The compiler cannot see through x: this keeps -ffast-math from simplifying a compensated sum. It is no instruction.
INLINE double opaque(double x) {
#ifdef __aarch64__
    __asm__("" : "+w"(x));
#else
    __asm__("" : "+x"(x));
#endif
    return x;
}

// sum += change (TwoSum); what rounding takes away is given back by the next call.
INLINE void add_compensated(double *sum, double *lost, double change) {
    const double old = *sum, full = opaque(change + *lost), new = opaque(old + full), seen = opaque(new - old);
    *lost = opaque(old - opaque(new - seen)) + opaque(full - seen);
    *sum = new;
}

// The next guess: an extrapolation, corrected by the line through what the last two steps missed where that would have been nearer.
INLINE void guess(int n, double *x, const double *extrapolated, double (*before)[3]) {
    EACH(k, n) {
#ifdef CORRECTED
        const double missed = x[k] - before[k][0], more = missed - before[k][1];
        const int nearer = 2.0 * fabs(more - before[k][2]) < fabs(missed);
        before[k][0] = extrapolated[k], before[k][1] = missed, before[k][2] = more;
        x[k] = extrapolated[k] + (nearer ? missed + more : 0.0);
#else
        (void)before;
        x[k] = extrapolated[k];
#endif
    }
}

// `steps` steps from `start` = (q, p); every new state is a row of `store`. Returns the number of iterations, -1 on failure.
static long integrate(long steps, double h, parameters c, const double *start, double (*store)[8]) {
    const double m[4] = {c.m1, c.m1, c.m2, c.m2}, per_m[4] = {1.0 / c.m1, 1.0 / c.m1, 1.0 / c.m2, 1.0 / c.m2};
    const double weight[4] = {0.0, h * c.m1 * c.g, 0.0, h * c.m2 * c.g}, l[2] = {c.l1, c.l2}, per_h = 1.0 / h;
    double q[4], p[4], lost_q[4] = {0}, lost_p[4] = {0}, V2[4], V3[4], L1[2] = {0}, L2[2] = {0}, x[2], y[2];
    double last_rate = 1.0, last_V3 = 0.0;  // of the last step: rate of convergence, and |V_3|^2, which stands for its guess
    double seen_V2[4][3] = {{0}}, seen_L1[2][3] = {{0}}, seen_L2[2][3] = {{0}}, next[4];
    long iterations = 0;

    // First guess: along the tangent, without reactions
    EACH(k, 4) q[k] = start[k], p[k] = start[4 + k], V2[k] = 0.5 * per_m[k] * p[k];
    rods at1 = rods_at(q, 0.0, V2);
    for (long step = 0; step < steps; step++) {
        // V_3 = 8 V_2 - base3 + (M^-1 N_1^T/2) L_1 and r without the terms of the unknowns
        double MN1[2][4], base2[4], base3[4];
        EACH(i, 2) EACH(k, 4) MN1[i][k] = 0.5 * per_m[k] * at1.N[i][k];
        EACH(k, 4) base2[k] = 0.125 * weight[k] - 0.5 * p[k], base3[k] = per_m[k] * (3.0 * p[k] - 0.5 * weight[k]);
        EACH(k, 4) V3[k] = 8.0 * V2[k] - base3[k] + (MN1[0][k] * L1[0] + MN1[1][k] * L1[1]);
        rods at2 = rods_at(q, h, V2), at3 = rods_at(q, h, V3);

        // P, E and S at the guess; E by rows
        double B[4][4], A[4][4], NA[2][4], K[2][2], S[2][2], E[2][4], P[4][4];
        tangent_mass(&at2, m, L2, h / 24.0, B);
        inverse4(B, A);
        times_matrix(at2.N, A, NA);
        EACH(i, 2) times(at2.N, NA[i], K[i]);
        inverse2(K, S);
        EACH(i, 2) EACH(k, 4) E[i][k] = S[i][0] * NA[0][k] + S[i][1] * NA[1][k];
        EACH(j, 4) EACH(k, 4) P[j][k] = A[j][k] - (NA[0][j] * E[0][k] + NA[1][j] * E[1][k]);

        // D dL_1 = 8 N_3 P r + 8 N_3 E c_2 - c_3,   D = N_3 M^-1 N_1^T/2 - (2/3) N_3 P N_1^T
        double PN1[2][4], N3P[2][4], N3E[2][2], EN1[2][2], D[2][2], per_D[2][2];
        times_matrix(at1.N, P, PN1);
        times_matrix(at3.N, P, N3P);
        EACH(j, 2) {
            times(at3.N, MN1[j], x), times(at3.N, PN1[j], y);
            EACH(i, 2) D[i][j] = x[i] - (2.0 / 3.0) * y[i];
            times(at3.N, E[j], x), times(at1.N, E[j], y);
            EACH(i, 2) N3E[i][j] = x[i], EN1[j][i] = (1.0 / 12.0) * y[i];
        }
        inverse2(D, per_D);
        EACH(i, 2) EACH(k, 4) PN1[i][k] *= 1.0 / 12.0;

        // X takes (r, c_2, c_3) to (dL_1, dL_2/24); stored by columns
        double X[8][4];
        EACH(i, 2) {
            EACH(k, 4) X[k][i] = 8.0 * (per_D[i][0] * N3P[0][k] + per_D[i][1] * N3P[1][k]);
            EACH(k, 2) X[4 + k][i] = 8.0 * (per_D[i][0] * N3E[0][k] + per_D[i][1] * N3E[1][k]), X[6 + k][i] = -per_D[i][k];
        }
        EACH(i, 2) EACH(k, 8) {
            const double direct = k < 4 ? -E[i][k] : k < 6 ? S[i][k - 4] : 0.0;
            X[k][2 + i] = direct - (EN1[i][0] * X[k][0] + EN1[i][1] * X[k][1]);
        }

        const double scale = dot(q, q) * per_h * per_h;
        double per_size = 1.0 / (dot(V2, V2) + last_V3 + 1e-16 * scale + 1e-300), previous = NONE, rate = 1.0;
        for (int count = 1;; count++) {
            double a1[4], a2[4], r[4], c2[2], c3[2], dL[4], dV2[4], dV3[4];
            transposed(at1.N, L1, a1), transposed(at2.N, L2, a2);
            EACH(k, 4) r[k] = (m[k] * V2[k] + base2[k] + (1.0 / 12.0) * a1[k]) + (1.0 / 24.0) * a2[k];
            EACH(i, 2) c2[i] = (at2.r[i] - l[i]) * per_h, c3[i] = (at3.r[i] - l[i]) * per_h;
            EACH(i, 4) dL[i] = ((X[4][i] * c2[0] + X[5][i] * c2[1]) + (X[6][i] * c3[0] + X[7][i] * c3[1]))
                               + ((X[0][i] * r[0] + X[1][i] * r[1]) + (X[2][i] * r[2] + X[3][i] * r[3]));
            EACH(i, 4) dV2[i] = -(((P[0][i] * r[0] + P[1][i] * r[1]) + (P[2][i] * r[2] + P[3][i] * r[3]))
                                  + (E[0][i] * c2[0] + E[1][i] * c2[1])) - (PN1[0][i] * dL[0] + PN1[1][i] * dL[1]);
            EACH(k, 4) V2[k] += dV2[k], dV3[k] = 8.0 * dV2[k] + (MN1[0][k] * dL[0] + MN1[1][k] * dL[1]);
            EACH(i, 2) L1[i] += dL[i], L2[i] += 24.0 * dL[2 + i];
            EACH(k, 4) V3[k] = 8.0 * V2[k] - base3[k] + (MN1[0][k] * L1[0] + MN1[1][k] * L1[1]);
            at2 = rods_at(q, h, V2), at3 = rods_at(q, h, V3);

            // The next increment is expected to be `rate` times this one; stop if it is lost in round-off
            const double size = per_size * (dot(dV2, dV2) + dot(dV3, dV3)), ratio = size / previous;
            const double noise = NOISE * scale * per_size;
            if (count == 1) rate = least(1.0, most(100.0 * last_rate, FASTEST_GUESS));
            else if (ratio > 0.0 && (count == 2 || size > most(SMALL, noise))) rate = most(ratio, FASTEST);
            const int stalled = ratio >= 0.25 && (size <= noise || (size <= STAGNATION && rate <= FAST));
            if (size * rate <= ROUND_OFF || stalled) {
                if (count > 1) last_rate = rate;
                iterations += count;
                break;
            }
            if (!(size < NONE) || (count > 1 && ratio >= 1.0) || count == MAX_ITERATIONS) return -1;
            previous = size;
            if (count == 1 && size > 1.0) {  // the guess was far too small to measure increments by, as in a start from rest
                per_size = 1.0 / (dot(V2, V2) + last_V3 + 1e-16 * scale + 1e-300);
                previous = NONE;
            }
        }

        // p_1 = p - a_1/6 - (2/3) a_2 - a_3/6, where L_3 makes N_3 M^-1 p_1 = 0
        double a1[4], a2[4], a3[4], dp[4], v[4], MN3[2][4], per_K[2][2];
        transposed(at1.N, L1, a1), transposed(at2.N, L2, a2);
        EACH(k, 4) dp[k] = -((1.0 / 6.0) * a1[k] + (2.0 / 3.0) * a2[k] + weight[k]), v[k] = per_m[k] * (p[k] + dp[k]);
        EACH(i, 2) {
            EACH(k, 4) MN3[i][k] = per_m[k] * at3.N[i][k];
            times(at3.N, MN3[i], K[i]);
        }
        inverse2(K, per_K);
        times(at3.N, v, x);
        EACH(i, 2) y[i] = per_K[i][0] * x[0] + per_K[i][1] * x[1];  // L_3/6
        transposed(at3.N, y, a3);
        EACH(k, 4) {
            add_compensated(&q[k], &lost_q[k], h * V3[k]);
            add_compensated(&p[k], &lost_p[k], dp[k] - a3[k]);
            store[step][k] = q[k], store[step][4 + k] = p[k];
        }

        // Guess: the polynomials through this step's stages, continued; that of positions may have the new velocity, too
        at1 = at3;
        last_V3 = dot(V3, V3);
        EACH(k, 4) next[k] = 2.0 * V3[k] - 3.0 * V2[k];
#ifdef CORRECTED
        EACH(k, 4) next[k] += 1.5 * (per_m[k] * p[k] + 4.0 * V2[k] - 3.0 * V3[k]);
#endif
        guess(4, V2, next, seen_V2);
        EACH(i, 2) next[i] = L1[i] - 3.0 * L2[i] + 18.0 * y[i], next[2 + i] = 6.0 * y[i];
        guess(2, L1, next + 2, seen_L1), guess(2, L2, next, seen_L2);
    }
    return iterations;
}

static double energy(const double *s, parameters c) {
    return (s[4] * s[4] + s[5] * s[5]) / (2.0 * c.m1) + (s[6] * s[6] + s[7] * s[7]) / (2.0 * c.m2)
           + c.g * (c.m1 * s[1] + c.m2 * s[3]);
}

int main(int argc, char **argv) {
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: %s STEPS H [G]\n", argv[0]);
        return 2;
    }
    const long steps = atol(argv[1]);
    const double h = atof(argv[2]), start[8] = {0.5, -sqrt(0.75), 0.0, -2.0 * sqrt(0.75)};
    const parameters c = {1.0, 1.0, 1.0, 1.0, argc > 3 ? atof(argv[3]) : 1.0};
    double(*store)[8] = malloc((size_t)(steps > 0 ? steps : 1) * sizeof *store);
    if (steps < 1 || !store) {
        fprintf(stderr, "STEPS must be positive, and the states must fit into memory\n");
        return 2;
    }
    struct timespec begin, end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    const long iterations = integrate(steps, h, c, start, store);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    if (iterations < 0) {
        fprintf(stderr, "the iteration did not converge\n");
        return 1;
    }
    double energy_error = 0.0, constraint = 0.0, hidden = 0.0;
    for (long i = 0; i < steps; i++) {
        const double *s = store[i], dx = s[2] - s[0], dz = s[3] - s[1], r1 = hypot(s[0], s[1]), r2 = hypot(dx, dz);
        energy_error = fmax(energy_error, fabs(energy(s, c) - energy(start, c)));
        constraint = fmax(constraint, fmax(fabs(r1 - c.l1), fabs(r2 - c.l2)));
        hidden = fmax(hidden, fabs(s[0] * s[4] + s[1] * s[5]) / (c.m1 * r1));
        hidden = fmax(hidden, fabs(dx * (s[6] / c.m2 - s[4] / c.m1) + dz * (s[7] / c.m2 - s[5] / c.m1)) / r2);
    }
    const double *q = store[steps - 1];
    const double us = 1e6 * (double)(end.tv_sec - begin.tv_sec) + 1e-3 * (double)(end.tv_nsec - begin.tv_nsec);
    printf("{\"us_per_step\": %.4f, \"iterations_per_step\": %.3f, \"energy_error\": %.4e, \"constraint\": %.2e, "
           "\"hidden\": %.2e, \"q\": [%.16g, %.16g, %.16g, %.16g]}\n",
           us / (double)steps, (double)iterations / (double)steps, energy_error, constraint, hidden, q[0], q[1], q[2], q[3]);
    free(store);
    return 0;
}

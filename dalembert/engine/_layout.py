"""Names for the positions in the small arrays that the driver shares with Python."""

# counts (integers)
STEPS_DONE, SAVED, ITERATIONS, FACTORIZATIONS, AGE, MODE, SIGN, PERIODS, SUBSTEP, PIVOTED, PIVOTED_LEFT = range(11)
N_COUNTS = 11

# numbers (floats)
RATE, TOLERANCE, COST_RATIO, PERIOD_COST, FASTEST = range(5)
N_NUMBERS = 5

KNOWN_AGES = 64

# layout (integers): slots of memory, sizes, and positions in `index`
(STATE, N_STATE, DELTA, X, N_X, RESIDUAL, WEIGHTS, FACTORS, STRAIGHT_LINE, N_ENTRIES, FILLED, ROW_START, DIAGONAL, COLUMN,
 SCATTER, ROWS, COLUMNS, WEIGHT_OF, POLISH, STAGE_MULTIPLIERS, N_STAGE, DENSE, ENTRY_ROW, ENTRY_COLUMN) = range(24)  # fmt: skip
N_LAYOUT = 24

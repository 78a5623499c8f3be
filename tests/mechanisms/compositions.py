"""Methods of high order for mechanisms in space, compiled in a fraction of the time of LobattoIIIAB(3) and (4)."""

import dalembert as da

ORDER_4, ORDER_6 = (da.compose(da.Rattle(), order) for order in (4, 6))
"""Their kernels are those of one RATTLE step."""

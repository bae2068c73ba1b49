"""Writes cubic_rfc9438.csv: the cubic function of RFC 9438 section 4.2, exactly."""
from decimal import Decimal, getcontext
from pathlib import Path

getcontext().prec = 40
C, BETA = Decimal("0.4"), Decimal("0.7")


def cube_root(x):
    """Newton's iteration."""
    if x == 0:
        return x
    y = Decimal(float(x) ** (1 / 3))
    for _ in range(8):
        y = (2 * y + x / (y * y)) / 3
    return y


lines = ["w_max,cwnd_epoch,k_s,t_s,w_cubic"]
for w_max in (20, 100, 246, 1000, 10_000, 100_000):
    for start in (int(w_max * BETA), w_max):
        k = cube_root(Decimal(w_max - start) / C)
        for t in ("0", "0.1", "0.5", "1", "2.5", "5", "7.25", "10", "20", "30"):
            w = C * (Decimal(t) - k) ** 3 + w_max
            lines.append(f"{w_max},{start},{k:.6f},{t},{w:.4f}")
Path(__file__).with_name("cubic_rfc9438.csv").write_text("\n".join(lines) + "\n")

"""GCC's estimate of the delay's variation and its threshold, by the equations of draft-ietf-rmcat-gcc-02 §5.3 and §5.4.

Reads nothing; writes gcc_filter.csv: the time between the departures and between the arrivals of two groups (ms), then the estimate
m_hat (ms) and the threshold del_var_th (ms) after them. As in libwebrtc, the estimate that is compared with the threshold is m_hat times
the number of groups, at most 60; the file has m_hat itself. K, the number of groups over which f_max is taken, is 60 too.
"""
import random

Q, CHI, K, K_U, K_D = 1e-3, 0.01, 60, 0.01, 0.00018


def rows():
    rng = random.Random(8698)
    m, e, var, th, departures = 0.0, 0.1, 0.0, 12.5, []
    var = 1.0
    for i in range(1, 601):
        departure = rng.choice([5.0, 10.0, 20.0, 33.0, 33.0, 33.0])
        # A queue grows from group 200 to 260 and drains until 320; there is noise throughout, and an outlier now and then.
        trend = 4.0 if 200 <= i < 260 else -4.0 if 260 <= i < 320 else 0.0
        d = rng.gauss(trend, 1.5) + (60.0 if i % 150 == 0 else 0.0)
        arrival = max(departure + d, 0.0)
        departures.append(departure)
        # 1/f_max in ms; the draft's exponent is 30 / (1000 · f_max) with f_max in 1/ms.
        shortest = min(departures[-K:])
        alpha = (1 - CHI) ** (30 * shortest / 1000)
        z = (arrival - departure) - m
        bound = 3 * var**0.5
        z = max(-bound, min(bound, z))
        var = max(alpha * var + (1 - alpha) * z * z, 1.0)
        k = (e + Q) / (var + e + Q)
        m += z * k
        e = (1 - k) * (e + Q)
        compared = abs(m * min(i, 60))
        if compared - th <= 15:
            gain = K_D if compared < th else K_U
            th = max(6.0, min(600.0, th + min(arrival, 100.0) * gain * (compared - th)))
        yield departure, arrival, m, th


with open("gcc_filter.csv", "w") as out:
    out.write("departure_ms,arrival_ms,m_ms,threshold_ms\n")
    for row in rows():
        out.write(",".join(f"{value:.9f}" for value in row) + "\n")

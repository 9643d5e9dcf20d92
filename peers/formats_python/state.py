"""The state of one UAV as a Python program would hold it: dictionaries, lists, strings and numbers.

The same content as `noctule_formats::uav_state::UavState::realistic`, from the same seed: all numbers are exact in single
precision, so nothing is rounded on the way.
"""

MASK = (1 << 64) - 1
FIXED_BYTES = 640  # of the plain layout without points
CDR_FIXED_BYTES = 640  # of the CDR encoding without points
POINT_BYTES = 16


class Random:
    """SplitMix64, of which 20 bits are used."""

    def __init__(self, seed):
        self.state = seed

    def share(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        mixed = ((self.state ^ (self.state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        return ((mixed ^ (mixed >> 31)) >> 44) / (1 << 20)

    def within(self, limit):
        return (self.share() * 2.0 - 1.0) * limit

    def list(self, count, limit):
        return [self.within(limit) for _ in range(count)]

    def shares(self, count):
        return [self.share() for _ in range(count)]


def realistic(encoded_bytes, seed):
    """A state whose plain and CDR encodings have about `encoded_bytes`."""
    random = Random(seed)
    state = without_points(random)
    count = (max(encoded_bytes - CDR_FIXED_BYTES, 0) + POINT_BYTES // 2) // POINT_BYTES
    state["points"] = [
        {
            "x_m": random.within(64.0),
            "y_m": random.within(64.0),
            "z_m": random.within(16.0),
            "intensity": random.share(),
        }
        for _ in range(count)
    ]
    return state


def without_points(random):
    return {
        "header": {"sequence": 0, "stamp_ns": 0, "frame_id": "map"},
        "position_m": random.list(3, 1024.0),
        "attitude": random.list(4, 1.0),
        "velocity_m_s": random.list(3, 16.0),
        "pose_covariance": random.shares(21),
        "velocity_covariance": random.shares(21),
        "imu": {
            "angular_velocity_rad_s": random.list(3, 4.0),
            "acceleration_m_s2": random.list(3, 16.0),
            "temperature_c": 32.0 + random.within(8.0),
        },
        "battery": {
            "voltage_v": 22.0 + random.within(2.0),
            "current_a": 16.0 + random.within(8.0),
            "remaining": random.share(),
            "cells_v": [3.5 + random.within(0.5) for _ in range(6)],
        },
        "gps": {
            "latitude_deg": 50.0 + random.within(1.0),
            "longitude_deg": 12.0 + random.within(1.0),
            "altitude_m": 512.0 + random.within(256.0),
            "horizontal_error_m": random.share(),
            "satellites": 14,
            "fix": 3,
        },
        "armed": True,
        "mode": 4,
        "status_text": "Holding position, wind 6 m/s from the west",
        "parameters": [
            {"name": "MPC_XY_VEL_MAX", "value": random.within(16.0)},
            {"name": "MPC_Z_VEL_MAX_UP", "value": random.within(16.0)},
            {"name": "COM_RC_LOSS_T", "value": random.within(16.0)},
            {"name": "BAT_LOW_THR", "value": random.share()},
        ],
        "waypoints": [
            {
                "latitude_deg": 50.0 + random.within(1.0),
                "longitude_deg": 12.0 + random.within(1.0),
                "altitude_m": 512.0 + random.within(256.0),
                "speed_m_s": 8.0 + random.within(8.0),
            }
            for _ in range(4)
        ],
    }

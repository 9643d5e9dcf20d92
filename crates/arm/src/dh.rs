//! The lengths of an arm of the UR family.

use serde::{Deserialize, Serialize};

/// The six lengths of an arm whose joints 2, 3 and 4 are parallel, in the standard Denavit–Hartenberg notation.
///
/// The twists are those of the family: α = (π/2, 0, 0, π/2, −π/2, 0); all lengths that are not here are zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Geometry {
    /// Height of the shoulder above the base.
    pub d1_m: f64,
    /// Upper arm; negative in the manufacturer's notation.
    pub a2_m: f64,
    /// Forearm; negative in the manufacturer's notation.
    pub a3_m: f64,
    /// First wrist, along the shoulder's axis.
    pub d4_m: f64,
    /// Second wrist, between the axes of joints 4 and 6.
    pub d5_m: f64,
    /// Third wrist: to the flange.
    pub d6_m: f64,
}

/// Sine of each joint's twist; the cosine is zero where the sine is not.
pub(crate) const TWIST_SINES: [f64; 6] = [1.0, 0.0, 0.0, 1.0, -1.0, 0.0];

/// Hardware series of the UR5: their lengths differ by up to 4 mm, which a pose shows as some 2 mrad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    /// The first series (CB2). Source: CB3 manual, table C.1.
    One,
    /// The second series. Source: CB3 manual, table C.2.
    Two,
    /// The third series (CB3). Source: CB3 manual, table C.3.
    Three,
    /// UR5e. Source: the manufacturer's page on Denavit–Hartenberg parameters.
    E,
}

/// A series that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no series of a UR5; use 1, 2, 3 or e")]
pub struct UnknownSeries(String);

impl std::str::FromStr for Series {
    type Err = UnknownSeries;

    fn from_str(text: &str) -> Result<Series, UnknownSeries> {
        match text {
            "1" => Ok(Series::One),
            "2" => Ok(Series::Two),
            "3" => Ok(Series::Three),
            "e" | "5e" => Ok(Series::E),
            _ => Err(UnknownSeries(text.to_owned())),
        }
    }
}

impl Series {
    /// Lengths of the series.
    pub fn geometry(self) -> Geometry {
        let [d1_m, a3_m, d4_m, d5_m, d6_m] = match self {
            Series::One => [0.089_20, -0.392_43, 0.109_00, 0.093_00, 0.082_00],
            Series::Two => [0.089_20, -0.392_25, 0.110_00, 0.094_75, 0.082_50],
            Series::Three => [0.089_159, -0.392_25, 0.109_15, 0.094_65, 0.082_3],
            Series::E => [0.162_5, -0.392_2, 0.133_3, 0.099_7, 0.099_6],
        };
        Geometry { d1_m, a2_m: -0.425, a3_m, d4_m, d5_m, d6_m }
    }
}

impl Default for Geometry {
    fn default() -> Geometry {
        Series::Three.geometry()
    }
}

/// Lengths that make no arm.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{name} is {metres} m; each length must be a number between 1 mm and 10 m, with either sign")]
pub struct BadLength {
    /// Name of the length.
    pub name: &'static str,
    /// Value of the length, m.
    pub metres: f64,
}

impl Geometry {
    /// Refuses lengths with which nothing can be computed.
    pub fn checked(self) -> Result<Geometry, BadLength> {
        let named = [
            ("d1_m", self.d1_m),
            ("a2_m", self.a2_m),
            ("a3_m", self.a3_m),
            ("d4_m", self.d4_m),
            ("d5_m", self.d5_m),
            ("d6_m", self.d6_m),
        ];
        match named.into_iter().find(|(_, metres)| !(1e-3..=10.0).contains(&metres.abs())) {
            Some((name, metres)) => Err(BadLength { name, metres }),
            None => Ok(self),
        }
    }

    /// The offset `a` of each joint.
    pub fn a_m(&self) -> [f64; 6] {
        [0.0, self.a2_m, self.a3_m, 0.0, 0.0, 0.0]
    }

    /// The offset `d` of each joint.
    pub fn d_m(&self) -> [f64; 6] {
        [self.d1_m, 0.0, 0.0, self.d4_m, self.d5_m, self.d6_m]
    }
}

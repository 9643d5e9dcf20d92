//! A PID controller in parallel form with a filtered derivative, in backward-Euler steps.

/// `P + I/s + D·N/(1 + N/s)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gains {
    /// Proportional.
    pub p: f64,
    /// Integral, 1/s.
    pub i: f64,
    /// Derivative, s.
    pub d: f64,
    /// Corner of the derivative's filter, rad/s.
    pub n: f64,
}

impl Gains {
    /// The seed's.
    pub const SEED: Gains = Gains {
        p: 10.585_729_091_067_4,
        i: 78.233_995_335_906_7,
        d: 0.327_956_120_616_846,
        n: 454.516_416_693_375,
    };
}

/// Limit of the voltage, and the behaviour beyond it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// Largest magnitude of the output, V.
    pub voltage_v: f64,
    /// Back-calculation: the integral forgets the cut-off part with this time constant, s.
    pub tracking_s: f64,
}

/// The controller's state.
#[derive(Clone, Debug)]
pub struct Pid {
    gains: Gains,
    limit: Option<Limit>,
    /// The derivative acts on the measurement only: a leap of the reference makes no kick.
    derives_measurement: bool,
    step_s: f64,
    integral: f64,
    filtered: f64,
}

impl Pid {
    /// A controller at rest. The derivative acts on the error unless [`Pid::on_measurement`].
    pub fn new(gains: Gains, limit: Option<Limit>, step_s: f64) -> Pid {
        Pid { gains, limit, derives_measurement: false, step_s, integral: 0.0, filtered: 0.0 }
    }

    /// Lets the derivative act on the measurement alone.
    pub fn on_measurement(mut self) -> Pid {
        self.derives_measurement = true;
        self
    }

    /// The output for this error; `measurement` is what the error was subtracted from.
    pub fn step(&mut self, error: f64, measurement: f64) -> f64 {
        let Gains { p, i, d, n } = self.gains;
        let derived = if self.derives_measurement { -measurement } else { error };
        let integral = self.integral + self.step_s * i * error;
        let derivative = n * (d * derived - self.filtered) / (1.0 + n * self.step_s);
        self.filtered += self.step_s * derivative;
        let wanted = p * error + integral + derivative;
        let Some(Limit { voltage_v, tracking_s }) = self.limit else {
            self.integral = integral;
            return wanted;
        };
        let given = wanted.clamp(-voltage_v, voltage_v);
        self.integral = integral + self.step_s / tracking_s * (given - wanted);
        given
    }

    /// Forgets what it integrated; the derivative starts from this measurement without a kick.
    pub fn reset(&mut self, measurement: f64) {
        self.integral = 0.0;
        self.filtered = if self.derives_measurement { -self.gains.d * measurement } else { 0.0 };
    }
}

//! Faults of arguments of the command line: one sentence each, with the way out.

use std::io;

/// Why an argument is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArgumentError {
    #[error("\"{0}\" is no time; write e.g. 20ms")]
    Time(String),
    #[error("write a number and us, ms or s, such as {example}")]
    Duration { example: &'static str },
    #[error("\"{0}\" is no number of seconds; write e.g. 5 or 0.5")]
    Seconds(String),
    #[error("{0} s is no duration; write e.g. 12")]
    Length(f64),
    #[error("write a percentage from 0% to 30%, such as 1%")]
    NoisePercent,
    #[error("write a share such as 1% or 0.01")]
    NoiseShare,
    #[error("\"{text}\" is not {count} numbers with commas between them")]
    Numbers { text: String, count: usize },
    #[error("\"{0}\" does not end in .svg; the picture is an SVG")]
    Svg(String),
    #[error("a picture is .svg or .png; end the name with one of them")]
    Picture,
    #[error("\"{0}\" is no rate; write a number of Hz between 10 and 1000000")]
    ControlRate(String),
    #[error(
        "\"{0}\" are no gains; write P,I,D,N, each between -1e9 and 1e9, and N, the corner of the derivative's filter in rad/s, above 0"
    )]
    Gains(String),
    #[error("\"{0}\" is no deadline of a command; write a time from 1ms to 10s")]
    CommandDeadline(String),
    #[error(
        "\"{text}\" is no pose: {fault}; write X,Y,Z,QX,QY,QZ,QW, metres and a quaternion with the real part last"
    )]
    Pose { text: String, fault: String },
    #[error("\"{0}\" is no rate; write a number from 0.000001 to 1000000, e.g. 0.5")]
    PlayRate(String),
    #[error("write a number of samples per second, from 0.001 to 1000000")]
    PublishRate,
    #[error(
        "\"{0}\" names no input; write mouse:, touchpad:, gamepad: or file: and a path, e.g. mouse:/dev/input/event3"
    )]
    Input(String),
    #[error("\"{0}\" counts per mm is not between 0.1 and 1000")]
    CountsPerMm(String),
    #[error("\"{0}\" is no new name for a topic; write /from:=/to")]
    NewName(String),
    #[error("write two whole numbers of nanoseconds, none negative, with a comma between them")]
    WireTimes,
    #[error("\"{0}\" is not known; give hold, age or bound")]
    Knowledge(String),
    #[error("\"{text}\" are no delays; give at most {most} numbers of milliseconds, 0 to 5000, with commas")]
    Delays { text: String, most: usize },
    #[error("\"{0}\" is no speed; give 0.1 to 20 virtual seconds a second")]
    Speed(String),
    #[error("{0} cannot run at 0 baud; write e.g. {0}:921600")]
    NoBaud(String),
    #[error("\"{baud}\" is no speed; write e.g. {path}:921600")]
    Baud { path: String, baud: String },
    #[error("\"{0}\" is no device with its speed; write e.g. /dev/ttyUSB0:921600")]
    Device(String),
    #[error("\"{text}\" is no address ({cause}); write e.g. {example}")]
    Address { text: String, cause: io::Error, example: &'static str },
    #[error("\"{0}\" has no address")]
    NoAddress(String),
    #[error("\"{0}\" names no port; write HOST:PORT, such as robot:{port}", port = noctule::sync::PORT)]
    NoPort(String),
    #[error("the host of {server} is not found ({cause}); check its name, or write its address")]
    Host { server: String, cause: io::Error },
    #[error("the host of {0} is not found (no address); check its name, or write its address")]
    HostWithoutAddress(String),
}

//! Zenoh's session as the bridge uses it: how it is configured, and publishers and subscribers with ROS 2's options.

use std::path::Path;
use std::time::Duration;

use noctule::{Durability, Qos};
use noctule_ros_zenoh::plan::is_reliable;
use zenoh::qos::{CongestionControl, Priority, Reliability};
use zenoh::sample::{Locality, Sample};
use zenoh::{Config, Session, Wait};
use zenoh_ext::{
    AdvancedPublisher, AdvancedPublisherBuilderExt, AdvancedSubscriber, AdvancedSubscriberBuilderExt,
    CacheConfig, HistoryConfig, MissDetectionConfig, RecoveryConfig,
};

use crate::shared::RouteError;

/// The router of ROS 2, `rmw_zenohd`, on this host.
pub(crate) const ENDPOINT_DEFAULT: &str = "tcp/localhost:7447";
/// A reliable publisher says so often which sample was its last, as rmw_zenoh's do.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// Time limit of a query for a history: rmw_zenoh sets none; a day is none in practice.
const QUERY: Duration = Duration::from_secs(86_400);

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file of settings.
    #[error("{file} is no configuration of Zenoh: {why}; see zenoh.io/docs/manual/configuration")]
    File { file: String, why: String },
    /// The endpoint.
    #[error("{endpoint:?} is no endpoint of Zenoh; write e.g. {ENDPOINT_DEFAULT} or tls/fleet.example:7447")]
    Endpoint { endpoint: String },
    /// A setting that Zenoh does not know any more.
    #[error("Zenoh refuses a setting of the bridge: {0}")]
    Setting(String),
}

/// The configuration: a file's if there is one, else a client of the endpoint, as programs of ROS 2 are but for their mode.
pub(crate) fn config(endpoint: Option<&str>, file: Option<&Path>) -> Result<Config, ConfigError> {
    let mut config = match file {
        Some(file) => Config::from_file(file)
            .map_err(|why| ConfigError::File { file: file.display().to_string(), why: why.to_string() })?,
        None => Config::default(),
    };
    let mut set = |name: &str, value: &str| config.insert_json5(name, value);
    let setting = |error: zenoh::Error| ConfigError::Setting(error.to_string());
    if file.is_none() {
        set("mode", "\"client\"").map_err(setting)?;
        set("scouting/multicast/enabled", "false").map_err(setting)?;
    }
    // Caches of latched topics count by them.
    set("timestamping/enabled", "true").map_err(setting)?;
    if let Some(endpoint) = endpoint.or(file.is_none().then_some(ENDPOINT_DEFAULT)) {
        let list = serde_json::json!([endpoint]).to_string();
        let is_endpoint = endpoint.parse::<zenoh::config::EndPoint>().is_ok();
        if !is_endpoint || set("connect/endpoints", &list).is_err() {
            return Err(ConfigError::Endpoint { endpoint: endpoint.to_owned() });
        }
    }
    Ok(config)
}

/// A publisher under one key, with ROS 2's options for this quality of service.
pub(crate) fn publisher(
    session: &Session,
    key: String,
    qos: &Qos,
) -> Result<AdvancedPublisher<'static>, RouteError> {
    let is_kept = qos.durability == Durability::TransientLocal;
    let reliability = if is_reliable(qos) { Reliability::Reliable } else { Reliability::BestEffort };
    let builder = session
        .declare_publisher(key)
        .congestion_control(CongestionControl::Drop)
        .priority(Priority::Data)
        .express(false)
        .reliability(reliability)
        .allowed_destination(Locality::Remote)
        .advanced();
    if !is_kept {
        return Ok(builder.wait()?);
    }
    let depth = usize::try_from(qos.depth).unwrap_or(1).max(1);
    let builder = builder.cache(CacheConfig::default().max_samples(depth)).publisher_detection();
    let publisher = match is_reliable(qos) {
        true => {
            let detection = MissDetectionConfig::default().sporadic_heartbeat(HEARTBEAT);
            builder.sample_miss_detection(detection).wait()?
        }
        false => builder.wait()?,
    };
    Ok(publisher)
}

/// A subscriber under one key, with ROS 2's options; of its own session's samples it gets none.
pub(crate) fn subscriber(
    session: &Session,
    key: String,
    qos: &Qos,
    callback: impl Fn(Sample) + Send + Sync + 'static,
) -> Result<AdvancedSubscriber<()>, RouteError> {
    let is_kept = qos.durability == Durability::TransientLocal;
    let builder =
        session.declare_subscriber(key).allowed_origin(Locality::Remote).callback(callback).advanced();
    if !is_kept {
        return Ok(builder.wait()?);
    }
    let depth = usize::try_from(qos.depth).unwrap_or(1).max(1);
    let history = HistoryConfig::default().detect_late_publishers().max_samples(depth);
    let builder = builder.history(history).subscriber_detection().query_timeout(QUERY);
    let subscriber = match is_reliable(qos) {
        true => builder.recovery(RecoveryConfig::default().heartbeat()).wait()?,
        false => builder.wait()?,
    };
    Ok(subscriber)
}

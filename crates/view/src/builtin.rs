//! Definitions of common messages of ROS 2: their fields, by the packages `common_interfaces` and `geometry2`.

/// Name and fields of each type.
pub const DEFINITIONS: &[(&str, &str)] = &[
    ("builtin_interfaces/msg/Time", "int32 sec\nuint32 nanosec"),
    ("builtin_interfaces/msg/Duration", "int32 sec\nuint32 nanosec"),
    ("std_msgs/msg/Header", "builtin_interfaces/Time stamp\nstring frame_id"),
    ("std_msgs/msg/Bool", "bool data"),
    ("std_msgs/msg/String", "string data"),
    ("std_msgs/msg/Int32", "int32 data"),
    ("std_msgs/msg/Int64", "int64 data"),
    ("std_msgs/msg/UInt32", "uint32 data"),
    ("std_msgs/msg/UInt64", "uint64 data"),
    ("std_msgs/msg/Float32", "float32 data"),
    ("std_msgs/msg/Float64", "float64 data"),
    ("std_msgs/msg/ColorRGBA", "float32 r\nfloat32 g\nfloat32 b\nfloat32 a"),
    ("geometry_msgs/msg/Vector3", "float64 x\nfloat64 y\nfloat64 z"),
    ("geometry_msgs/msg/Point", "float64 x\nfloat64 y\nfloat64 z"),
    ("geometry_msgs/msg/Point32", "float32 x\nfloat32 y\nfloat32 z"),
    ("geometry_msgs/msg/Quaternion", "float64 x 0\nfloat64 y 0\nfloat64 z 0\nfloat64 w 1"),
    ("geometry_msgs/msg/Pose", "Point position\nQuaternion orientation"),
    ("geometry_msgs/msg/Pose2D", "float64 x\nfloat64 y\nfloat64 theta"),
    ("geometry_msgs/msg/PoseStamped", "std_msgs/Header header\nPose pose"),
    ("geometry_msgs/msg/PoseArray", "std_msgs/Header header\nPose[] poses"),
    ("geometry_msgs/msg/PoseWithCovariance", "Pose pose\nfloat64[36] covariance"),
    ("geometry_msgs/msg/PoseWithCovarianceStamped", "std_msgs/Header header\nPoseWithCovariance pose"),
    ("geometry_msgs/msg/PointStamped", "std_msgs/Header header\nPoint point"),
    ("geometry_msgs/msg/Twist", "Vector3 linear\nVector3 angular"),
    ("geometry_msgs/msg/TwistStamped", "std_msgs/Header header\nTwist twist"),
    ("geometry_msgs/msg/TwistWithCovariance", "Twist twist\nfloat64[36] covariance"),
    ("geometry_msgs/msg/Accel", "Vector3 linear\nVector3 angular"),
    ("geometry_msgs/msg/Wrench", "Vector3 force\nVector3 torque"),
    ("geometry_msgs/msg/WrenchStamped", "std_msgs/Header header\nWrench wrench"),
    ("geometry_msgs/msg/Transform", "Vector3 translation\nQuaternion rotation"),
    (
        "geometry_msgs/msg/TransformStamped",
        "std_msgs/Header header\nstring child_frame_id\nTransform transform",
    ),
    ("tf2_msgs/msg/TFMessage", "geometry_msgs/TransformStamped[] transforms"),
    (
        "nav_msgs/msg/Odometry",
        "std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/PoseWithCovariance pose\n\
         geometry_msgs/TwistWithCovariance twist",
    ),
    ("nav_msgs/msg/Path", "std_msgs/Header header\ngeometry_msgs/PoseStamped[] poses"),
    (
        "nav_msgs/msg/MapMetaData",
        "builtin_interfaces/Time map_load_time\nfloat32 resolution\nuint32 width\nuint32 height\ngeometry_msgs/Pose origin",
    ),
    ("nav_msgs/msg/OccupancyGrid", "std_msgs/Header header\nMapMetaData info\nint8[] data"),
    (
        "sensor_msgs/msg/Imu",
        "std_msgs/Header header\ngeometry_msgs/Quaternion orientation\nfloat64[9] orientation_covariance\n\
         geometry_msgs/Vector3 angular_velocity\nfloat64[9] angular_velocity_covariance\n\
         geometry_msgs/Vector3 linear_acceleration\nfloat64[9] linear_acceleration_covariance",
    ),
    (
        "sensor_msgs/msg/JointState",
        "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort",
    ),
    (
        "sensor_msgs/msg/LaserScan",
        "std_msgs/Header header\nfloat32 angle_min\nfloat32 angle_max\nfloat32 angle_increment\nfloat32 time_increment\n\
         float32 scan_time\nfloat32 range_min\nfloat32 range_max\nfloat32[] ranges\nfloat32[] intensities",
    ),
    (
        "sensor_msgs/msg/Range",
        "std_msgs/Header header\nuint8 radiation_type\nfloat32 field_of_view\nfloat32 min_range\nfloat32 max_range\n\
         float32 range\nfloat32 variance",
    ),
    ("sensor_msgs/msg/NavSatStatus", "int8 status -2\nuint16 service"),
    (
        "sensor_msgs/msg/NavSatFix",
        "std_msgs/Header header\nNavSatStatus status\nfloat64 latitude\nfloat64 longitude\nfloat64 altitude\n\
         float64[9] position_covariance\nuint8 position_covariance_type",
    ),
    ("sensor_msgs/msg/FluidPressure", "std_msgs/Header header\nfloat64 fluid_pressure\nfloat64 variance"),
    ("sensor_msgs/msg/Temperature", "std_msgs/Header header\nfloat64 temperature\nfloat64 variance"),
    (
        "sensor_msgs/msg/MagneticField",
        "std_msgs/Header header\ngeometry_msgs/Vector3 magnetic_field\nfloat64[9] magnetic_field_covariance",
    ),
    (
        "sensor_msgs/msg/Image",
        "std_msgs/Header header\nuint32 height\nuint32 width\nstring encoding\nuint8 is_bigendian\nuint32 step\nuint8[] data",
    ),
    ("sensor_msgs/msg/CompressedImage", "std_msgs/Header header\nstring format\nuint8[] data"),
    ("sensor_msgs/msg/PointField", "string name\nuint32 offset\nuint8 datatype\nuint32 count"),
    (
        "sensor_msgs/msg/PointCloud2",
        "std_msgs/Header header\nuint32 height\nuint32 width\nPointField[] fields\nbool is_bigendian\nuint32 point_step\n\
         uint32 row_step\nuint8[] data\nbool is_dense",
    ),
];

pub use root::*;

const _: () = ::planus::check_version_compatibility("planus-1.3.0");

/// The root namespace
///
/// Generated from these locations:
/// * File `schemas/uav_state.fbs`
#[no_implicit_prelude]
#[allow(clippy::needless_lifetimes)]
mod root {
    /// The namespace `uav`
    ///
    /// Generated from these locations:
    /// * File `schemas/uav_state.fbs`
    pub mod uav {
        /// The struct `Waypoint` in the namespace `uav`
        ///
        /// Generated from these locations:
        /// * Struct `Waypoint` in the file `schemas/uav_state.fbs:4`
        #[derive(
            Copy, Clone, Debug, PartialEq, PartialOrd, Default, ::serde::Serialize, ::serde::Deserialize,
        )]
        pub struct Waypoint {
            /// The field `latitude_deg` in the struct `Waypoint`
            pub latitude_deg: f64,

            /// The field `longitude_deg` in the struct `Waypoint`
            pub longitude_deg: f64,

            /// The field `altitude_m` in the struct `Waypoint`
            pub altitude_m: f32,

            /// The field `speed_m_s` in the struct `Waypoint`
            pub speed_m_s: f32,
        }

        /// # Safety
        /// The Planus compiler correctly calculates `ALIGNMENT` and `SIZE`.
        unsafe impl ::planus::Primitive for Waypoint {
            const ALIGNMENT: usize = 8;
            const SIZE: usize = 24;
        }

        #[allow(clippy::identity_op)]
        impl ::planus::WriteAsPrimitive<Waypoint> for Waypoint {
            #[inline]
            fn write<const N: usize>(&self, cursor: ::planus::Cursor<'_, N>, buffer_position: u32) {
                let (cur, cursor) = cursor.split::<8, 16>();
                self.latitude_deg.write(cur, buffer_position - 0);
                let (cur, cursor) = cursor.split::<8, 8>();
                self.longitude_deg.write(cur, buffer_position - 8);
                let (cur, cursor) = cursor.split::<4, 4>();
                self.altitude_m.write(cur, buffer_position - 16);
                let (cur, cursor) = cursor.split::<4, 0>();
                self.speed_m_s.write(cur, buffer_position - 20);
                cursor.finish([]);
            }
        }

        impl ::planus::WriteAsOffset<Waypoint> for Waypoint {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Waypoint> {
                unsafe {
                    builder.write_with(24, 7, |buffer_position, bytes| {
                        let bytes = bytes.as_mut_ptr();

                        ::planus::WriteAsPrimitive::write(
                            self,
                            ::planus::Cursor::new(&mut *(bytes as *mut [::core::mem::MaybeUninit<u8>; 24])),
                            buffer_position,
                        );
                    });
                }
                builder.current_offset()
            }
        }

        impl ::planus::WriteAs<Waypoint> for Waypoint {
            type Prepared = Self;
            #[inline]
            fn prepare(&self, _builder: &mut ::planus::Builder) -> Self {
                *self
            }
        }

        impl ::planus::WriteAsOptional<Waypoint> for Waypoint {
            type Prepared = Self;
            #[inline]
            fn prepare(&self, _builder: &mut ::planus::Builder) -> ::core::option::Option<Self> {
                ::core::option::Option::Some(*self)
            }
        }

        /// Reference to a deserialized [Waypoint].
        #[derive(Copy, Clone)]
        pub struct WaypointRef<'a>(::planus::ArrayWithStartOffset<'a, 24>);

        impl<'a> WaypointRef<'a> {
            /// Getter for the [`latitude_deg` field](Waypoint#structfield.latitude_deg).
            pub fn latitude_deg(&self) -> f64 {
                let buffer = self.0.advance_as_array::<8>(0).unwrap();

                f64::from_le_bytes(*buffer.as_array())
            }

            /// Getter for the [`longitude_deg` field](Waypoint#structfield.longitude_deg).
            pub fn longitude_deg(&self) -> f64 {
                let buffer = self.0.advance_as_array::<8>(8).unwrap();

                f64::from_le_bytes(*buffer.as_array())
            }

            /// Getter for the [`altitude_m` field](Waypoint#structfield.altitude_m).
            pub fn altitude_m(&self) -> f32 {
                let buffer = self.0.advance_as_array::<4>(16).unwrap();

                f32::from_le_bytes(*buffer.as_array())
            }

            /// Getter for the [`speed_m_s` field](Waypoint#structfield.speed_m_s).
            pub fn speed_m_s(&self) -> f32 {
                let buffer = self.0.advance_as_array::<4>(20).unwrap();

                f32::from_le_bytes(*buffer.as_array())
            }
        }

        impl<'a> ::core::fmt::Debug for WaypointRef<'a> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                let mut f = f.debug_struct("WaypointRef");
                f.field("latitude_deg", &self.latitude_deg());
                f.field("longitude_deg", &self.longitude_deg());
                f.field("altitude_m", &self.altitude_m());
                f.field("speed_m_s", &self.speed_m_s());
                f.finish()
            }
        }

        impl<'a> ::core::convert::From<::planus::ArrayWithStartOffset<'a, 24>> for WaypointRef<'a> {
            fn from(array: ::planus::ArrayWithStartOffset<'a, 24>) -> Self {
                Self(array)
            }
        }

        impl<'a> ::core::convert::From<WaypointRef<'a>> for Waypoint {
            #[allow(unreachable_code)]
            fn from(value: WaypointRef<'a>) -> Self {
                Self {
                    latitude_deg: value.latitude_deg(),
                    longitude_deg: value.longitude_deg(),
                    altitude_m: value.altitude_m(),
                    speed_m_s: value.speed_m_s(),
                }
            }
        }

        impl<'a, 'b> ::core::cmp::PartialEq<WaypointRef<'a>> for WaypointRef<'b> {
            fn eq(&self, other: &WaypointRef<'_>) -> bool {
                self.latitude_deg() == other.latitude_deg()
                    && self.longitude_deg() == other.longitude_deg()
                    && self.altitude_m() == other.altitude_m()
                    && self.speed_m_s() == other.speed_m_s()
            }
        }

        impl<'a, 'b> ::core::cmp::PartialOrd<WaypointRef<'a>> for WaypointRef<'b> {
            fn partial_cmp(&self, other: &WaypointRef<'_>) -> ::core::option::Option<::core::cmp::Ordering> {
                match self.latitude_deg().partial_cmp(&other.latitude_deg()) {
                    ::core::option::Option::Some(::core::cmp::Ordering::Equal) => (),
                    o => return o,
                }

                match self.longitude_deg().partial_cmp(&other.longitude_deg()) {
                    ::core::option::Option::Some(::core::cmp::Ordering::Equal) => (),
                    o => return o,
                }

                match self.altitude_m().partial_cmp(&other.altitude_m()) {
                    ::core::option::Option::Some(::core::cmp::Ordering::Equal) => (),
                    o => return o,
                }

                self.speed_m_s().partial_cmp(&other.speed_m_s())
            }
        }

        impl<'a> ::planus::TableRead<'a> for WaypointRef<'a> {
            #[inline]
            fn from_buffer(
                buffer: ::planus::SliceWithStartOffset<'a>,
                offset: usize,
            ) -> ::core::result::Result<Self, ::planus::errors::ErrorKind> {
                let buffer = buffer.advance_as_array::<24>(offset)?;
                ::core::result::Result::Ok(Self(buffer))
            }
        }

        impl<'a> ::planus::VectorRead<'a> for WaypointRef<'a> {
            const STRIDE: usize = 24;

            #[inline]
            unsafe fn from_buffer(buffer: ::planus::SliceWithStartOffset<'a>, offset: usize) -> Self {
                Self(unsafe { buffer.unchecked_advance_as_array(offset) })
            }
        }

        /// # Safety
        /// The planus compiler generates implementations that initialize
        /// the bytes in `write_values`.
        unsafe impl ::planus::VectorWrite<Waypoint> for Waypoint {
            const STRIDE: usize = 24;

            type Value = Waypoint;

            #[inline]
            fn prepare(&self, _builder: &mut ::planus::Builder) -> Self::Value {
                *self
            }

            #[inline]
            unsafe fn write_values(
                values: &[Waypoint],
                bytes: *mut ::core::mem::MaybeUninit<u8>,
                buffer_position: u32,
            ) {
                let bytes = bytes as *mut [::core::mem::MaybeUninit<u8>; 24];
                for (i, v) in ::core::iter::Iterator::enumerate(values.iter()) {
                    ::planus::WriteAsPrimitive::write(
                        v,
                        ::planus::Cursor::new(unsafe { &mut *bytes.add(i) }),
                        buffer_position - (24 * i) as u32,
                    );
                }
            }
        }

        /// The struct `Point` in the namespace `uav`
        ///
        /// Generated from these locations:
        /// * Struct `Point` in the file `schemas/uav_state.fbs:11`
        #[derive(
            Copy, Clone, Debug, PartialEq, PartialOrd, Default, ::serde::Serialize, ::serde::Deserialize,
        )]
        pub struct Point {
            /// The field `x_m` in the struct `Point`
            pub x_m: f32,

            /// The field `y_m` in the struct `Point`
            pub y_m: f32,

            /// The field `z_m` in the struct `Point`
            pub z_m: f32,

            /// The field `intensity` in the struct `Point`
            pub intensity: f32,
        }

        /// # Safety
        /// The Planus compiler correctly calculates `ALIGNMENT` and `SIZE`.
        unsafe impl ::planus::Primitive for Point {
            const ALIGNMENT: usize = 4;
            const SIZE: usize = 16;
        }

        #[allow(clippy::identity_op)]
        impl ::planus::WriteAsPrimitive<Point> for Point {
            #[inline]
            fn write<const N: usize>(&self, cursor: ::planus::Cursor<'_, N>, buffer_position: u32) {
                let (cur, cursor) = cursor.split::<4, 12>();
                self.x_m.write(cur, buffer_position - 0);
                let (cur, cursor) = cursor.split::<4, 8>();
                self.y_m.write(cur, buffer_position - 4);
                let (cur, cursor) = cursor.split::<4, 4>();
                self.z_m.write(cur, buffer_position - 8);
                let (cur, cursor) = cursor.split::<4, 0>();
                self.intensity.write(cur, buffer_position - 12);
                cursor.finish([]);
            }
        }

        impl ::planus::WriteAsOffset<Point> for Point {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Point> {
                unsafe {
                    builder.write_with(16, 3, |buffer_position, bytes| {
                        let bytes = bytes.as_mut_ptr();

                        ::planus::WriteAsPrimitive::write(
                            self,
                            ::planus::Cursor::new(&mut *(bytes as *mut [::core::mem::MaybeUninit<u8>; 16])),
                            buffer_position,
                        );
                    });
                }
                builder.current_offset()
            }
        }

        impl ::planus::WriteAs<Point> for Point {
            type Prepared = Self;
            #[inline]
            fn prepare(&self, _builder: &mut ::planus::Builder) -> Self {
                *self
            }
        }

        impl ::planus::WriteAsOptional<Point> for Point {
            type Prepared = Self;
            #[inline]
            fn prepare(&self, _builder: &mut ::planus::Builder) -> ::core::option::Option<Self> {
                ::core::option::Option::Some(*self)
            }
        }

        /// Reference to a deserialized [Point].
        #[derive(Copy, Clone)]
        pub struct PointRef<'a>(::planus::ArrayWithStartOffset<'a, 16>);

        impl<'a> PointRef<'a> {
            /// Getter for the [`x_m` field](Point#structfield.x_m).
            pub fn x_m(&self) -> f32 {
                let buffer = self.0.advance_as_array::<4>(0).unwrap();

                f32::from_le_bytes(*buffer.as_array())
            }

            /// Getter for the [`y_m` field](Point#structfield.y_m).
            pub fn y_m(&self) -> f32 {
                let buffer = self.0.advance_as_array::<4>(4).unwrap();

                f32::from_le_bytes(*buffer.as_array())
            }

            /// Getter for the [`z_m` field](Point#structfield.z_m).
            pub fn z_m(&self) -> f32 {
                let buffer = self.0.advance_as_array::<4>(8).unwrap();

                f32::from_le_bytes(*buffer.as_array())
            }

            /// Getter for the [`intensity` field](Point#structfield.intensity).
            pub fn intensity(&self) -> f32 {
                let buffer = self.0.advance_as_array::<4>(12).unwrap();

                f32::from_le_bytes(*buffer.as_array())
            }
        }

        impl<'a> ::core::fmt::Debug for PointRef<'a> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                let mut f = f.debug_struct("PointRef");
                f.field("x_m", &self.x_m());
                f.field("y_m", &self.y_m());
                f.field("z_m", &self.z_m());
                f.field("intensity", &self.intensity());
                f.finish()
            }
        }

        impl<'a> ::core::convert::From<::planus::ArrayWithStartOffset<'a, 16>> for PointRef<'a> {
            fn from(array: ::planus::ArrayWithStartOffset<'a, 16>) -> Self {
                Self(array)
            }
        }

        impl<'a> ::core::convert::From<PointRef<'a>> for Point {
            #[allow(unreachable_code)]
            fn from(value: PointRef<'a>) -> Self {
                Self { x_m: value.x_m(), y_m: value.y_m(), z_m: value.z_m(), intensity: value.intensity() }
            }
        }

        impl<'a, 'b> ::core::cmp::PartialEq<PointRef<'a>> for PointRef<'b> {
            fn eq(&self, other: &PointRef<'_>) -> bool {
                self.x_m() == other.x_m()
                    && self.y_m() == other.y_m()
                    && self.z_m() == other.z_m()
                    && self.intensity() == other.intensity()
            }
        }

        impl<'a, 'b> ::core::cmp::PartialOrd<PointRef<'a>> for PointRef<'b> {
            fn partial_cmp(&self, other: &PointRef<'_>) -> ::core::option::Option<::core::cmp::Ordering> {
                match self.x_m().partial_cmp(&other.x_m()) {
                    ::core::option::Option::Some(::core::cmp::Ordering::Equal) => (),
                    o => return o,
                }

                match self.y_m().partial_cmp(&other.y_m()) {
                    ::core::option::Option::Some(::core::cmp::Ordering::Equal) => (),
                    o => return o,
                }

                match self.z_m().partial_cmp(&other.z_m()) {
                    ::core::option::Option::Some(::core::cmp::Ordering::Equal) => (),
                    o => return o,
                }

                self.intensity().partial_cmp(&other.intensity())
            }
        }

        impl<'a> ::planus::TableRead<'a> for PointRef<'a> {
            #[inline]
            fn from_buffer(
                buffer: ::planus::SliceWithStartOffset<'a>,
                offset: usize,
            ) -> ::core::result::Result<Self, ::planus::errors::ErrorKind> {
                let buffer = buffer.advance_as_array::<16>(offset)?;
                ::core::result::Result::Ok(Self(buffer))
            }
        }

        impl<'a> ::planus::VectorRead<'a> for PointRef<'a> {
            const STRIDE: usize = 16;

            #[inline]
            unsafe fn from_buffer(buffer: ::planus::SliceWithStartOffset<'a>, offset: usize) -> Self {
                Self(unsafe { buffer.unchecked_advance_as_array(offset) })
            }
        }

        /// # Safety
        /// The planus compiler generates implementations that initialize
        /// the bytes in `write_values`.
        unsafe impl ::planus::VectorWrite<Point> for Point {
            const STRIDE: usize = 16;

            type Value = Point;

            #[inline]
            fn prepare(&self, _builder: &mut ::planus::Builder) -> Self::Value {
                *self
            }

            #[inline]
            unsafe fn write_values(
                values: &[Point],
                bytes: *mut ::core::mem::MaybeUninit<u8>,
                buffer_position: u32,
            ) {
                let bytes = bytes as *mut [::core::mem::MaybeUninit<u8>; 16];
                for (i, v) in ::core::iter::Iterator::enumerate(values.iter()) {
                    ::planus::WriteAsPrimitive::write(
                        v,
                        ::planus::Cursor::new(unsafe { &mut *bytes.add(i) }),
                        buffer_position - (16 * i) as u32,
                    );
                }
            }
        }

        /// The table `Header` in the namespace `uav`
        ///
        /// Generated from these locations:
        /// * Table `Header` in the file `schemas/uav_state.fbs:18`
        #[derive(
            Clone, Debug, PartialEq, PartialOrd, Eq, Ord, Hash, ::serde::Serialize, ::serde::Deserialize,
        )]
        pub struct Header {
            /// The field `sequence` in the table `Header`
            pub sequence: u64,
            /// The field `stamp_ns` in the table `Header`
            pub stamp_ns: i64,
            /// The field `frame_id` in the table `Header`
            pub frame_id: ::planus::alloc::string::String,
        }

        #[allow(clippy::derivable_impls)]
        impl ::core::default::Default for Header {
            fn default() -> Self {
                Self { sequence: 0, stamp_ns: 0, frame_id: ::core::default::Default::default() }
            }
        }

        impl Header {
            /// Creates a [HeaderBuilder] for serializing an instance of this table.
            #[inline]
            pub fn builder() -> HeaderBuilder<()> {
                HeaderBuilder(())
            }

            #[allow(clippy::too_many_arguments)]
            pub fn create(
                builder: &mut ::planus::Builder,
                field_sequence: impl ::planus::WriteAsDefault<u64, u64>,
                field_stamp_ns: impl ::planus::WriteAsDefault<i64, i64>,
                field_frame_id: impl ::planus::WriteAs<::planus::Offset<str>>,
            ) -> ::planus::Offset<Self> {
                let prepared_sequence = field_sequence.prepare(builder, &0);
                let prepared_stamp_ns = field_stamp_ns.prepare(builder, &0);
                let prepared_frame_id = field_frame_id.prepare(builder);

                let mut table_writer: ::planus::table_writer::TableWriter<10> =
                    ::core::default::Default::default();
                if prepared_sequence.is_some() {
                    table_writer.write_entry::<u64>(0);
                }
                if prepared_stamp_ns.is_some() {
                    table_writer.write_entry::<i64>(1);
                }
                table_writer.write_entry::<::planus::Offset<str>>(2);

                unsafe {
                    table_writer.finish(builder, |object_writer| {
                        if let ::core::option::Option::Some(prepared_sequence) = prepared_sequence {
                            object_writer.write::<_, _, 8>(&prepared_sequence);
                        }
                        if let ::core::option::Option::Some(prepared_stamp_ns) = prepared_stamp_ns {
                            object_writer.write::<_, _, 8>(&prepared_stamp_ns);
                        }
                        object_writer.write::<_, _, 4>(&prepared_frame_id);
                    });
                }
                builder.current_offset()
            }
        }

        impl ::planus::WriteAs<::planus::Offset<Header>> for Header {
            type Prepared = ::planus::Offset<Self>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Header> {
                ::planus::WriteAsOffset::prepare(self, builder)
            }
        }

        impl ::planus::WriteAsOptional<::planus::Offset<Header>> for Header {
            type Prepared = ::planus::Offset<Self>;

            #[inline]
            fn prepare(
                &self,
                builder: &mut ::planus::Builder,
            ) -> ::core::option::Option<::planus::Offset<Header>> {
                ::core::option::Option::Some(::planus::WriteAsOffset::prepare(self, builder))
            }
        }

        impl ::planus::WriteAsOffset<Header> for Header {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Header> {
                Header::create(builder, self.sequence, self.stamp_ns, &self.frame_id)
            }
        }

        /// Builder for serializing an instance of the [Header] type.
        ///
        /// Can be created using the [Header::builder] method.
        #[derive(Debug)]
        #[must_use]
        pub struct HeaderBuilder<State>(State);

        impl HeaderBuilder<()> {
            /// Setter for the [`sequence` field](Header#structfield.sequence).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn sequence<T0>(self, value: T0) -> HeaderBuilder<(T0,)>
            where
                T0: ::planus::WriteAsDefault<u64, u64>,
            {
                HeaderBuilder((value,))
            }

            /// Sets the [`sequence` field](Header#structfield.sequence) to the default value.
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn sequence_as_default(self) -> HeaderBuilder<(::planus::DefaultValue,)> {
                self.sequence(::planus::DefaultValue)
            }
        }

        impl<T0> HeaderBuilder<(T0,)> {
            /// Setter for the [`stamp_ns` field](Header#structfield.stamp_ns).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn stamp_ns<T1>(self, value: T1) -> HeaderBuilder<(T0, T1)>
            where
                T1: ::planus::WriteAsDefault<i64, i64>,
            {
                let (v0,) = self.0;
                HeaderBuilder((v0, value))
            }

            /// Sets the [`stamp_ns` field](Header#structfield.stamp_ns) to the default value.
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn stamp_ns_as_default(self) -> HeaderBuilder<(T0, ::planus::DefaultValue)> {
                self.stamp_ns(::planus::DefaultValue)
            }
        }

        impl<T0, T1> HeaderBuilder<(T0, T1)> {
            /// Setter for the [`frame_id` field](Header#structfield.frame_id).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn frame_id<T2>(self, value: T2) -> HeaderBuilder<(T0, T1, T2)>
            where
                T2: ::planus::WriteAs<::planus::Offset<str>>,
            {
                let (v0, v1) = self.0;
                HeaderBuilder((v0, v1, value))
            }
        }

        impl<T0, T1, T2> HeaderBuilder<(T0, T1, T2)> {
            /// Finish writing the builder to get an [Offset](::planus::Offset) to a serialized [Header].
            #[inline]
            pub fn finish(self, builder: &mut ::planus::Builder) -> ::planus::Offset<Header>
            where
                Self: ::planus::WriteAsOffset<Header>,
            {
                ::planus::WriteAsOffset::prepare(&self, builder)
            }
        }

        impl<
            T0: ::planus::WriteAsDefault<u64, u64>,
            T1: ::planus::WriteAsDefault<i64, i64>,
            T2: ::planus::WriteAs<::planus::Offset<str>>,
        > ::planus::WriteAs<::planus::Offset<Header>> for HeaderBuilder<(T0, T1, T2)>
        {
            type Prepared = ::planus::Offset<Header>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Header> {
                ::planus::WriteAsOffset::prepare(self, builder)
            }
        }

        impl<
            T0: ::planus::WriteAsDefault<u64, u64>,
            T1: ::planus::WriteAsDefault<i64, i64>,
            T2: ::planus::WriteAs<::planus::Offset<str>>,
        > ::planus::WriteAsOptional<::planus::Offset<Header>> for HeaderBuilder<(T0, T1, T2)>
        {
            type Prepared = ::planus::Offset<Header>;

            #[inline]
            fn prepare(
                &self,
                builder: &mut ::planus::Builder,
            ) -> ::core::option::Option<::planus::Offset<Header>> {
                ::core::option::Option::Some(::planus::WriteAsOffset::prepare(self, builder))
            }
        }

        impl<
            T0: ::planus::WriteAsDefault<u64, u64>,
            T1: ::planus::WriteAsDefault<i64, i64>,
            T2: ::planus::WriteAs<::planus::Offset<str>>,
        > ::planus::WriteAsOffset<Header> for HeaderBuilder<(T0, T1, T2)>
        {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Header> {
                let (v0, v1, v2) = &self.0;
                Header::create(builder, v0, v1, v2)
            }
        }

        /// Reference to a deserialized [Header].
        #[derive(Copy, Clone)]
        pub struct HeaderRef<'a>(#[allow(dead_code)] ::planus::table_reader::Table<'a>);

        impl<'a> HeaderRef<'a> {
            /// Getter for the [`sequence` field](Header#structfield.sequence).
            #[inline]
            pub fn sequence(&self) -> ::planus::Result<u64> {
                ::core::result::Result::Ok(self.0.access(0, "Header", "sequence")?.unwrap_or(0))
            }

            /// Getter for the [`stamp_ns` field](Header#structfield.stamp_ns).
            #[inline]
            pub fn stamp_ns(&self) -> ::planus::Result<i64> {
                ::core::result::Result::Ok(self.0.access(1, "Header", "stamp_ns")?.unwrap_or(0))
            }

            /// Getter for the [`frame_id` field](Header#structfield.frame_id).
            #[inline]
            pub fn frame_id(&self) -> ::planus::Result<&'a ::core::primitive::str> {
                self.0.access_required(2, "Header", "frame_id")
            }
        }

        impl<'a> ::core::fmt::Debug for HeaderRef<'a> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                let mut f = f.debug_struct("HeaderRef");
                f.field("sequence", &self.sequence());
                f.field("stamp_ns", &self.stamp_ns());
                f.field("frame_id", &self.frame_id());
                f.finish()
            }
        }

        impl<'a> ::core::convert::TryFrom<HeaderRef<'a>> for Header {
            type Error = ::planus::Error;

            #[allow(unreachable_code)]
            fn try_from(value: HeaderRef<'a>) -> ::planus::Result<Self> {
                ::core::result::Result::Ok(Self {
                    sequence: ::core::convert::TryInto::try_into(value.sequence()?)?,
                    stamp_ns: ::core::convert::TryInto::try_into(value.stamp_ns()?)?,
                    frame_id: ::core::convert::Into::into(value.frame_id()?),
                })
            }
        }

        impl<'a> ::planus::TableRead<'a> for HeaderRef<'a> {
            #[inline]
            fn from_buffer(
                buffer: ::planus::SliceWithStartOffset<'a>,
                offset: usize,
            ) -> ::core::result::Result<Self, ::planus::errors::ErrorKind> {
                ::core::result::Result::Ok(Self(::planus::table_reader::Table::from_buffer(buffer, offset)?))
            }
        }

        impl<'a> ::planus::VectorReadInner<'a> for HeaderRef<'a> {
            type Error = ::planus::Error;
            const STRIDE: usize = 4;

            unsafe fn from_buffer(
                buffer: ::planus::SliceWithStartOffset<'a>,
                offset: usize,
            ) -> ::planus::Result<Self> {
                ::planus::TableRead::from_buffer(buffer, offset).map_err(|error_kind| {
                    error_kind.with_error_location("[HeaderRef]", "get", buffer.offset_from_start)
                })
            }
        }

        /// # Safety
        /// The planus compiler generates implementations that initialize
        /// the bytes in `write_values`.
        unsafe impl ::planus::VectorWrite<::planus::Offset<Header>> for Header {
            type Value = ::planus::Offset<Header>;
            const STRIDE: usize = 4;
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> Self::Value {
                ::planus::WriteAs::prepare(self, builder)
            }

            #[inline]
            unsafe fn write_values(
                values: &[::planus::Offset<Header>],
                bytes: *mut ::core::mem::MaybeUninit<u8>,
                buffer_position: u32,
            ) {
                let bytes = bytes as *mut [::core::mem::MaybeUninit<u8>; 4];
                for (i, v) in ::core::iter::Iterator::enumerate(values.iter()) {
                    ::planus::WriteAsPrimitive::write(
                        v,
                        ::planus::Cursor::new(unsafe { &mut *bytes.add(i) }),
                        buffer_position - (Self::STRIDE * i) as u32,
                    );
                }
            }
        }

        impl<'a> ::planus::ReadAsRoot<'a> for HeaderRef<'a> {
            fn read_as_root(slice: &'a [u8]) -> ::planus::Result<Self> {
                ::planus::TableRead::from_buffer(
                    ::planus::SliceWithStartOffset { buffer: slice, offset_from_start: 0 },
                    0,
                )
                .map_err(|error_kind| error_kind.with_error_location("[HeaderRef]", "read_as_root", 0))
            }
        }

        /// The table `Imu` in the namespace `uav`
        ///
        /// Generated from these locations:
        /// * Table `Imu` in the file `schemas/uav_state.fbs:24`
        #[derive(Clone, Debug, PartialEq, PartialOrd, ::serde::Serialize, ::serde::Deserialize)]
        pub struct Imu {
            /// The field `angular_velocity_rad_s` in the table `Imu`
            pub angular_velocity_rad_s: ::planus::alloc::vec::Vec<f32>,
            /// The field `acceleration_m_s2` in the table `Imu`
            pub acceleration_m_s2: ::planus::alloc::vec::Vec<f32>,
            /// The field `temperature_c` in the table `Imu`
            pub temperature_c: f32,
        }

        #[allow(clippy::derivable_impls)]
        impl ::core::default::Default for Imu {
            fn default() -> Self {
                Self {
                    angular_velocity_rad_s: ::core::default::Default::default(),
                    acceleration_m_s2: ::core::default::Default::default(),
                    temperature_c: 0.0,
                }
            }
        }

        impl Imu {
            /// Creates a [ImuBuilder] for serializing an instance of this table.
            #[inline]
            pub fn builder() -> ImuBuilder<()> {
                ImuBuilder(())
            }

            #[allow(clippy::too_many_arguments)]
            pub fn create(
                builder: &mut ::planus::Builder,
                field_angular_velocity_rad_s: impl ::planus::WriteAs<::planus::Offset<[f32]>>,
                field_acceleration_m_s2: impl ::planus::WriteAs<::planus::Offset<[f32]>>,
                field_temperature_c: impl ::planus::WriteAsDefault<f32, f32>,
            ) -> ::planus::Offset<Self> {
                let prepared_angular_velocity_rad_s = field_angular_velocity_rad_s.prepare(builder);
                let prepared_acceleration_m_s2 = field_acceleration_m_s2.prepare(builder);
                let prepared_temperature_c = field_temperature_c.prepare(builder, &0.0);

                let mut table_writer: ::planus::table_writer::TableWriter<10> =
                    ::core::default::Default::default();
                table_writer.write_entry::<::planus::Offset<[f32]>>(0);
                table_writer.write_entry::<::planus::Offset<[f32]>>(1);
                if prepared_temperature_c.is_some() {
                    table_writer.write_entry::<f32>(2);
                }

                unsafe {
                    table_writer.finish(builder, |object_writer| {
                        object_writer.write::<_, _, 4>(&prepared_angular_velocity_rad_s);
                        object_writer.write::<_, _, 4>(&prepared_acceleration_m_s2);
                        if let ::core::option::Option::Some(prepared_temperature_c) = prepared_temperature_c {
                            object_writer.write::<_, _, 4>(&prepared_temperature_c);
                        }
                    });
                }
                builder.current_offset()
            }
        }

        impl ::planus::WriteAs<::planus::Offset<Imu>> for Imu {
            type Prepared = ::planus::Offset<Self>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Imu> {
                ::planus::WriteAsOffset::prepare(self, builder)
            }
        }

        impl ::planus::WriteAsOptional<::planus::Offset<Imu>> for Imu {
            type Prepared = ::planus::Offset<Self>;

            #[inline]
            fn prepare(
                &self,
                builder: &mut ::planus::Builder,
            ) -> ::core::option::Option<::planus::Offset<Imu>> {
                ::core::option::Option::Some(::planus::WriteAsOffset::prepare(self, builder))
            }
        }

        impl ::planus::WriteAsOffset<Imu> for Imu {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Imu> {
                Imu::create(
                    builder,
                    &self.angular_velocity_rad_s,
                    &self.acceleration_m_s2,
                    self.temperature_c,
                )
            }
        }

        /// Builder for serializing an instance of the [Imu] type.
        ///
        /// Can be created using the [Imu::builder] method.
        #[derive(Debug)]
        #[must_use]
        pub struct ImuBuilder<State>(State);

        impl ImuBuilder<()> {
            /// Setter for the [`angular_velocity_rad_s` field](Imu#structfield.angular_velocity_rad_s).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn angular_velocity_rad_s<T0>(self, value: T0) -> ImuBuilder<(T0,)>
            where
                T0: ::planus::WriteAs<::planus::Offset<[f32]>>,
            {
                ImuBuilder((value,))
            }
        }

        impl<T0> ImuBuilder<(T0,)> {
            /// Setter for the [`acceleration_m_s2` field](Imu#structfield.acceleration_m_s2).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn acceleration_m_s2<T1>(self, value: T1) -> ImuBuilder<(T0, T1)>
            where
                T1: ::planus::WriteAs<::planus::Offset<[f32]>>,
            {
                let (v0,) = self.0;
                ImuBuilder((v0, value))
            }
        }

        impl<T0, T1> ImuBuilder<(T0, T1)> {
            /// Setter for the [`temperature_c` field](Imu#structfield.temperature_c).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn temperature_c<T2>(self, value: T2) -> ImuBuilder<(T0, T1, T2)>
            where
                T2: ::planus::WriteAsDefault<f32, f32>,
            {
                let (v0, v1) = self.0;
                ImuBuilder((v0, v1, value))
            }

            /// Sets the [`temperature_c` field](Imu#structfield.temperature_c) to the default value.
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn temperature_c_as_default(self) -> ImuBuilder<(T0, T1, ::planus::DefaultValue)> {
                self.temperature_c(::planus::DefaultValue)
            }
        }

        impl<T0, T1, T2> ImuBuilder<(T0, T1, T2)> {
            /// Finish writing the builder to get an [Offset](::planus::Offset) to a serialized [Imu].
            #[inline]
            pub fn finish(self, builder: &mut ::planus::Builder) -> ::planus::Offset<Imu>
            where
                Self: ::planus::WriteAsOffset<Imu>,
            {
                ::planus::WriteAsOffset::prepare(&self, builder)
            }
        }

        impl<
            T0: ::planus::WriteAs<::planus::Offset<[f32]>>,
            T1: ::planus::WriteAs<::planus::Offset<[f32]>>,
            T2: ::planus::WriteAsDefault<f32, f32>,
        > ::planus::WriteAs<::planus::Offset<Imu>> for ImuBuilder<(T0, T1, T2)>
        {
            type Prepared = ::planus::Offset<Imu>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Imu> {
                ::planus::WriteAsOffset::prepare(self, builder)
            }
        }

        impl<
            T0: ::planus::WriteAs<::planus::Offset<[f32]>>,
            T1: ::planus::WriteAs<::planus::Offset<[f32]>>,
            T2: ::planus::WriteAsDefault<f32, f32>,
        > ::planus::WriteAsOptional<::planus::Offset<Imu>> for ImuBuilder<(T0, T1, T2)>
        {
            type Prepared = ::planus::Offset<Imu>;

            #[inline]
            fn prepare(
                &self,
                builder: &mut ::planus::Builder,
            ) -> ::core::option::Option<::planus::Offset<Imu>> {
                ::core::option::Option::Some(::planus::WriteAsOffset::prepare(self, builder))
            }
        }

        impl<
            T0: ::planus::WriteAs<::planus::Offset<[f32]>>,
            T1: ::planus::WriteAs<::planus::Offset<[f32]>>,
            T2: ::planus::WriteAsDefault<f32, f32>,
        > ::planus::WriteAsOffset<Imu> for ImuBuilder<(T0, T1, T2)>
        {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Imu> {
                let (v0, v1, v2) = &self.0;
                Imu::create(builder, v0, v1, v2)
            }
        }

        /// Reference to a deserialized [Imu].
        #[derive(Copy, Clone)]
        pub struct ImuRef<'a>(#[allow(dead_code)] ::planus::table_reader::Table<'a>);

        impl<'a> ImuRef<'a> {
            /// Getter for the [`angular_velocity_rad_s` field](Imu#structfield.angular_velocity_rad_s).
            #[inline]
            pub fn angular_velocity_rad_s(&self) -> ::planus::Result<::planus::Vector<'a, f32>> {
                self.0.access_required(0, "Imu", "angular_velocity_rad_s")
            }

            /// Getter for the [`acceleration_m_s2` field](Imu#structfield.acceleration_m_s2).
            #[inline]
            pub fn acceleration_m_s2(&self) -> ::planus::Result<::planus::Vector<'a, f32>> {
                self.0.access_required(1, "Imu", "acceleration_m_s2")
            }

            /// Getter for the [`temperature_c` field](Imu#structfield.temperature_c).
            #[inline]
            pub fn temperature_c(&self) -> ::planus::Result<f32> {
                ::core::result::Result::Ok(self.0.access(2, "Imu", "temperature_c")?.unwrap_or(0.0))
            }
        }

        impl<'a> ::core::fmt::Debug for ImuRef<'a> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                let mut f = f.debug_struct("ImuRef");
                f.field("angular_velocity_rad_s", &self.angular_velocity_rad_s());
                f.field("acceleration_m_s2", &self.acceleration_m_s2());
                f.field("temperature_c", &self.temperature_c());
                f.finish()
            }
        }

        impl<'a> ::core::convert::TryFrom<ImuRef<'a>> for Imu {
            type Error = ::planus::Error;

            #[allow(unreachable_code)]
            fn try_from(value: ImuRef<'a>) -> ::planus::Result<Self> {
                ::core::result::Result::Ok(Self {
                    angular_velocity_rad_s: value.angular_velocity_rad_s()?.to_vec()?,
                    acceleration_m_s2: value.acceleration_m_s2()?.to_vec()?,
                    temperature_c: ::core::convert::TryInto::try_into(value.temperature_c()?)?,
                })
            }
        }

        impl<'a> ::planus::TableRead<'a> for ImuRef<'a> {
            #[inline]
            fn from_buffer(
                buffer: ::planus::SliceWithStartOffset<'a>,
                offset: usize,
            ) -> ::core::result::Result<Self, ::planus::errors::ErrorKind> {
                ::core::result::Result::Ok(Self(::planus::table_reader::Table::from_buffer(buffer, offset)?))
            }
        }

        impl<'a> ::planus::VectorReadInner<'a> for ImuRef<'a> {
            type Error = ::planus::Error;
            const STRIDE: usize = 4;

            unsafe fn from_buffer(
                buffer: ::planus::SliceWithStartOffset<'a>,
                offset: usize,
            ) -> ::planus::Result<Self> {
                ::planus::TableRead::from_buffer(buffer, offset).map_err(|error_kind| {
                    error_kind.with_error_location("[ImuRef]", "get", buffer.offset_from_start)
                })
            }
        }

        /// # Safety
        /// The planus compiler generates implementations that initialize
        /// the bytes in `write_values`.
        unsafe impl ::planus::VectorWrite<::planus::Offset<Imu>> for Imu {
            type Value = ::planus::Offset<Imu>;
            const STRIDE: usize = 4;
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> Self::Value {
                ::planus::WriteAs::prepare(self, builder)
            }

            #[inline]
            unsafe fn write_values(
                values: &[::planus::Offset<Imu>],
                bytes: *mut ::core::mem::MaybeUninit<u8>,
                buffer_position: u32,
            ) {
                let bytes = bytes as *mut [::core::mem::MaybeUninit<u8>; 4];
                for (i, v) in ::core::iter::Iterator::enumerate(values.iter()) {
                    ::planus::WriteAsPrimitive::write(
                        v,
                        ::planus::Cursor::new(unsafe { &mut *bytes.add(i) }),
                        buffer_position - (Self::STRIDE * i) as u32,
                    );
                }
            }
        }

        impl<'a> ::planus::ReadAsRoot<'a> for ImuRef<'a> {
            fn read_as_root(slice: &'a [u8]) -> ::planus::Result<Self> {
                ::planus::TableRead::from_buffer(
                    ::planus::SliceWithStartOffset { buffer: slice, offset_from_start: 0 },
                    0,
                )
                .map_err(|error_kind| error_kind.with_error_location("[ImuRef]", "read_as_root", 0))
            }
        }

        /// The table `Battery` in the namespace `uav`
        ///
        /// Generated from these locations:
        /// * Table `Battery` in the file `schemas/uav_state.fbs:30`
        #[derive(Clone, Debug, PartialEq, PartialOrd, ::serde::Serialize, ::serde::Deserialize)]
        pub struct Battery {
            /// The field `voltage_v` in the table `Battery`
            pub voltage_v: f32,
            /// The field `current_a` in the table `Battery`
            pub current_a: f32,
            /// The field `remaining` in the table `Battery`
            pub remaining: f32,
            /// The field `cells_v` in the table `Battery`
            pub cells_v: ::planus::alloc::vec::Vec<f32>,
        }

        #[allow(clippy::derivable_impls)]
        impl ::core::default::Default for Battery {
            fn default() -> Self {
                Self {
                    voltage_v: 0.0,
                    current_a: 0.0,
                    remaining: 0.0,
                    cells_v: ::core::default::Default::default(),
                }
            }
        }

        impl Battery {
            /// Creates a [BatteryBuilder] for serializing an instance of this table.
            #[inline]
            pub fn builder() -> BatteryBuilder<()> {
                BatteryBuilder(())
            }

            #[allow(clippy::too_many_arguments)]
            pub fn create(
                builder: &mut ::planus::Builder,
                field_voltage_v: impl ::planus::WriteAsDefault<f32, f32>,
                field_current_a: impl ::planus::WriteAsDefault<f32, f32>,
                field_remaining: impl ::planus::WriteAsDefault<f32, f32>,
                field_cells_v: impl ::planus::WriteAs<::planus::Offset<[f32]>>,
            ) -> ::planus::Offset<Self> {
                let prepared_voltage_v = field_voltage_v.prepare(builder, &0.0);
                let prepared_current_a = field_current_a.prepare(builder, &0.0);
                let prepared_remaining = field_remaining.prepare(builder, &0.0);
                let prepared_cells_v = field_cells_v.prepare(builder);

                let mut table_writer: ::planus::table_writer::TableWriter<12> =
                    ::core::default::Default::default();
                if prepared_voltage_v.is_some() {
                    table_writer.write_entry::<f32>(0);
                }
                if prepared_current_a.is_some() {
                    table_writer.write_entry::<f32>(1);
                }
                if prepared_remaining.is_some() {
                    table_writer.write_entry::<f32>(2);
                }
                table_writer.write_entry::<::planus::Offset<[f32]>>(3);

                unsafe {
                    table_writer.finish(builder, |object_writer| {
                        if let ::core::option::Option::Some(prepared_voltage_v) = prepared_voltage_v {
                            object_writer.write::<_, _, 4>(&prepared_voltage_v);
                        }
                        if let ::core::option::Option::Some(prepared_current_a) = prepared_current_a {
                            object_writer.write::<_, _, 4>(&prepared_current_a);
                        }
                        if let ::core::option::Option::Some(prepared_remaining) = prepared_remaining {
                            object_writer.write::<_, _, 4>(&prepared_remaining);
                        }
                        object_writer.write::<_, _, 4>(&prepared_cells_v);
                    });
                }
                builder.current_offset()
            }
        }

        impl ::planus::WriteAs<::planus::Offset<Battery>> for Battery {
            type Prepared = ::planus::Offset<Self>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Battery> {
                ::planus::WriteAsOffset::prepare(self, builder)
            }
        }

        impl ::planus::WriteAsOptional<::planus::Offset<Battery>> for Battery {
            type Prepared = ::planus::Offset<Self>;

            #[inline]
            fn prepare(
                &self,
                builder: &mut ::planus::Builder,
            ) -> ::core::option::Option<::planus::Offset<Battery>> {
                ::core::option::Option::Some(::planus::WriteAsOffset::prepare(self, builder))
            }
        }

        impl ::planus::WriteAsOffset<Battery> for Battery {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Battery> {
                Battery::create(builder, self.voltage_v, self.current_a, self.remaining, &self.cells_v)
            }
        }

        /// Builder for serializing an instance of the [Battery] type.
        ///
        /// Can be created using the [Battery::builder] method.
        #[derive(Debug)]
        #[must_use]
        pub struct BatteryBuilder<State>(State);

        impl BatteryBuilder<()> {
            /// Setter for the [`voltage_v` field](Battery#structfield.voltage_v).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn voltage_v<T0>(self, value: T0) -> BatteryBuilder<(T0,)>
            where
                T0: ::planus::WriteAsDefault<f32, f32>,
            {
                BatteryBuilder((value,))
            }

            /// Sets the [`voltage_v` field](Battery#structfield.voltage_v) to the default value.
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn voltage_v_as_default(self) -> BatteryBuilder<(::planus::DefaultValue,)> {
                self.voltage_v(::planus::DefaultValue)
            }
        }

        impl<T0> BatteryBuilder<(T0,)> {
            /// Setter for the [`current_a` field](Battery#structfield.current_a).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn current_a<T1>(self, value: T1) -> BatteryBuilder<(T0, T1)>
            where
                T1: ::planus::WriteAsDefault<f32, f32>,
            {
                let (v0,) = self.0;
                BatteryBuilder((v0, value))
            }

            /// Sets the [`current_a` field](Battery#structfield.current_a) to the default value.
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn current_a_as_default(self) -> BatteryBuilder<(T0, ::planus::DefaultValue)> {
                self.current_a(::planus::DefaultValue)
            }
        }

        impl<T0, T1> BatteryBuilder<(T0, T1)> {
            /// Setter for the [`remaining` field](Battery#structfield.remaining).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn remaining<T2>(self, value: T2) -> BatteryBuilder<(T0, T1, T2)>
            where
                T2: ::planus::WriteAsDefault<f32, f32>,
            {
                let (v0, v1) = self.0;
                BatteryBuilder((v0, v1, value))
            }

            /// Sets the [`remaining` field](Battery#structfield.remaining) to the default value.
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn remaining_as_default(self) -> BatteryBuilder<(T0, T1, ::planus::DefaultValue)> {
                self.remaining(::planus::DefaultValue)
            }
        }

        impl<T0, T1, T2> BatteryBuilder<(T0, T1, T2)> {
            /// Setter for the [`cells_v` field](Battery#structfield.cells_v).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn cells_v<T3>(self, value: T3) -> BatteryBuilder<(T0, T1, T2, T3)>
            where
                T3: ::planus::WriteAs<::planus::Offset<[f32]>>,
            {
                let (v0, v1, v2) = self.0;
                BatteryBuilder((v0, v1, v2, value))
            }
        }

        impl<T0, T1, T2, T3> BatteryBuilder<(T0, T1, T2, T3)> {
            /// Finish writing the builder to get an [Offset](::planus::Offset) to a serialized [Battery].
            #[inline]
            pub fn finish(self, builder: &mut ::planus::Builder) -> ::planus::Offset<Battery>
            where
                Self: ::planus::WriteAsOffset<Battery>,
            {
                ::planus::WriteAsOffset::prepare(&self, builder)
            }
        }

        impl<
            T0: ::planus::WriteAsDefault<f32, f32>,
            T1: ::planus::WriteAsDefault<f32, f32>,
            T2: ::planus::WriteAsDefault<f32, f32>,
            T3: ::planus::WriteAs<::planus::Offset<[f32]>>,
        > ::planus::WriteAs<::planus::Offset<Battery>> for BatteryBuilder<(T0, T1, T2, T3)>
        {
            type Prepared = ::planus::Offset<Battery>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Battery> {
                ::planus::WriteAsOffset::prepare(self, builder)
            }
        }

        impl<
            T0: ::planus::WriteAsDefault<f32, f32>,
            T1: ::planus::WriteAsDefault<f32, f32>,
            T2: ::planus::WriteAsDefault<f32, f32>,
            T3: ::planus::WriteAs<::planus::Offset<[f32]>>,
        > ::planus::WriteAsOptional<::planus::Offset<Battery>> for BatteryBuilder<(T0, T1, T2, T3)>
        {
            type Prepared = ::planus::Offset<Battery>;

            #[inline]
            fn prepare(
                &self,
                builder: &mut ::planus::Builder,
            ) -> ::core::option::Option<::planus::Offset<Battery>> {
                ::core::option::Option::Some(::planus::WriteAsOffset::prepare(self, builder))
            }
        }

        impl<
            T0: ::planus::WriteAsDefault<f32, f32>,
            T1: ::planus::WriteAsDefault<f32, f32>,
            T2: ::planus::WriteAsDefault<f32, f32>,
            T3: ::planus::WriteAs<::planus::Offset<[f32]>>,
        > ::planus::WriteAsOffset<Battery> for BatteryBuilder<(T0, T1, T2, T3)>
        {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Battery> {
                let (v0, v1, v2, v3) = &self.0;
                Battery::create(builder, v0, v1, v2, v3)
            }
        }

        /// Reference to a deserialized [Battery].
        #[derive(Copy, Clone)]
        pub struct BatteryRef<'a>(#[allow(dead_code)] ::planus::table_reader::Table<'a>);

        impl<'a> BatteryRef<'a> {
            /// Getter for the [`voltage_v` field](Battery#structfield.voltage_v).
            #[inline]
            pub fn voltage_v(&self) -> ::planus::Result<f32> {
                ::core::result::Result::Ok(self.0.access(0, "Battery", "voltage_v")?.unwrap_or(0.0))
            }

            /// Getter for the [`current_a` field](Battery#structfield.current_a).
            #[inline]
            pub fn current_a(&self) -> ::planus::Result<f32> {
                ::core::result::Result::Ok(self.0.access(1, "Battery", "current_a")?.unwrap_or(0.0))
            }

            /// Getter for the [`remaining` field](Battery#structfield.remaining).
            #[inline]
            pub fn remaining(&self) -> ::planus::Result<f32> {
                ::core::result::Result::Ok(self.0.access(2, "Battery", "remaining")?.unwrap_or(0.0))
            }

            /// Getter for the [`cells_v` field](Battery#structfield.cells_v).
            #[inline]
            pub fn cells_v(&self) -> ::planus::Result<::planus::Vector<'a, f32>> {
                self.0.access_required(3, "Battery", "cells_v")
            }
        }

        impl<'a> ::core::fmt::Debug for BatteryRef<'a> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                let mut f = f.debug_struct("BatteryRef");
                f.field("voltage_v", &self.voltage_v());
                f.field("current_a", &self.current_a());
                f.field("remaining", &self.remaining());
                f.field("cells_v", &self.cells_v());
                f.finish()
            }
        }

        impl<'a> ::core::convert::TryFrom<BatteryRef<'a>> for Battery {
            type Error = ::planus::Error;

            #[allow(unreachable_code)]
            fn try_from(value: BatteryRef<'a>) -> ::planus::Result<Self> {
                ::core::result::Result::Ok(Self {
                    voltage_v: ::core::convert::TryInto::try_into(value.voltage_v()?)?,
                    current_a: ::core::convert::TryInto::try_into(value.current_a()?)?,
                    remaining: ::core::convert::TryInto::try_into(value.remaining()?)?,
                    cells_v: value.cells_v()?.to_vec()?,
                })
            }
        }

        impl<'a> ::planus::TableRead<'a> for BatteryRef<'a> {
            #[inline]
            fn from_buffer(
                buffer: ::planus::SliceWithStartOffset<'a>,
                offset: usize,
            ) -> ::core::result::Result<Self, ::planus::errors::ErrorKind> {
                ::core::result::Result::Ok(Self(::planus::table_reader::Table::from_buffer(buffer, offset)?))
            }
        }

        impl<'a> ::planus::VectorReadInner<'a> for BatteryRef<'a> {
            type Error = ::planus::Error;
            const STRIDE: usize = 4;

            unsafe fn from_buffer(
                buffer: ::planus::SliceWithStartOffset<'a>,
                offset: usize,
            ) -> ::planus::Result<Self> {
                ::planus::TableRead::from_buffer(buffer, offset).map_err(|error_kind| {
                    error_kind.with_error_location("[BatteryRef]", "get", buffer.offset_from_start)
                })
            }
        }

        /// # Safety
        /// The planus compiler generates implementations that initialize
        /// the bytes in `write_values`.
        unsafe impl ::planus::VectorWrite<::planus::Offset<Battery>> for Battery {
            type Value = ::planus::Offset<Battery>;
            const STRIDE: usize = 4;
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> Self::Value {
                ::planus::WriteAs::prepare(self, builder)
            }

            #[inline]
            unsafe fn write_values(
                values: &[::planus::Offset<Battery>],
                bytes: *mut ::core::mem::MaybeUninit<u8>,
                buffer_position: u32,
            ) {
                let bytes = bytes as *mut [::core::mem::MaybeUninit<u8>; 4];
                for (i, v) in ::core::iter::Iterator::enumerate(values.iter()) {
                    ::planus::WriteAsPrimitive::write(
                        v,
                        ::planus::Cursor::new(unsafe { &mut *bytes.add(i) }),
                        buffer_position - (Self::STRIDE * i) as u32,
                    );
                }
            }
        }

        impl<'a> ::planus::ReadAsRoot<'a> for BatteryRef<'a> {
            fn read_as_root(slice: &'a [u8]) -> ::planus::Result<Self> {
                ::planus::TableRead::from_buffer(
                    ::planus::SliceWithStartOffset { buffer: slice, offset_from_start: 0 },
                    0,
                )
                .map_err(|error_kind| error_kind.with_error_location("[BatteryRef]", "read_as_root", 0))
            }
        }

        /// The table `Gps` in the namespace `uav`
        ///
        /// Generated from these locations:
        /// * Table `Gps` in the file `schemas/uav_state.fbs:37`
        #[derive(Clone, Debug, PartialEq, PartialOrd, ::serde::Serialize, ::serde::Deserialize)]
        pub struct Gps {
            /// The field `latitude_deg` in the table `Gps`
            pub latitude_deg: f64,
            /// The field `longitude_deg` in the table `Gps`
            pub longitude_deg: f64,
            /// The field `altitude_m` in the table `Gps`
            pub altitude_m: f64,
            /// The field `horizontal_error_m` in the table `Gps`
            pub horizontal_error_m: f32,
            /// The field `satellites` in the table `Gps`
            pub satellites: u8,
            /// The field `fix` in the table `Gps`
            pub fix: u8,
        }

        #[allow(clippy::derivable_impls)]
        impl ::core::default::Default for Gps {
            fn default() -> Self {
                Self {
                    latitude_deg: 0.0,
                    longitude_deg: 0.0,
                    altitude_m: 0.0,
                    horizontal_error_m: 0.0,
                    satellites: 0,
                    fix: 0,
                }
            }
        }

        impl Gps {
            /// Creates a [GpsBuilder] for serializing an instance of this table.
            #[inline]
            pub fn builder() -> GpsBuilder<()> {
                GpsBuilder(())
            }

            #[allow(clippy::too_many_arguments)]
            pub fn create(
                builder: &mut ::planus::Builder,
                field_latitude_deg: impl ::planus::WriteAsDefault<f64, f64>,
                field_longitude_deg: impl ::planus::WriteAsDefault<f64, f64>,
                field_altitude_m: impl ::planus::WriteAsDefault<f64, f64>,
                field_horizontal_error_m: impl ::planus::WriteAsDefault<f32, f32>,
                field_satellites: impl ::planus::WriteAsDefault<u8, u8>,
                field_fix: impl ::planus::WriteAsDefault<u8, u8>,
            ) -> ::planus::Offset<Self> {
                let prepared_latitude_deg = field_latitude_deg.prepare(builder, &0.0);
                let prepared_longitude_deg = field_longitude_deg.prepare(builder, &0.0);
                let prepared_altitude_m = field_altitude_m.prepare(builder, &0.0);
                let prepared_horizontal_error_m = field_horizontal_error_m.prepare(builder, &0.0);
                let prepared_satellites = field_satellites.prepare(builder, &0);
                let prepared_fix = field_fix.prepare(builder, &0);

                let mut table_writer: ::planus::table_writer::TableWriter<16> =
                    ::core::default::Default::default();
                if prepared_latitude_deg.is_some() {
                    table_writer.write_entry::<f64>(0);
                }
                if prepared_longitude_deg.is_some() {
                    table_writer.write_entry::<f64>(1);
                }
                if prepared_altitude_m.is_some() {
                    table_writer.write_entry::<f64>(2);
                }
                if prepared_horizontal_error_m.is_some() {
                    table_writer.write_entry::<f32>(3);
                }
                if prepared_satellites.is_some() {
                    table_writer.write_entry::<u8>(4);
                }
                if prepared_fix.is_some() {
                    table_writer.write_entry::<u8>(5);
                }

                unsafe {
                    table_writer.finish(builder, |object_writer| {
                        if let ::core::option::Option::Some(prepared_latitude_deg) = prepared_latitude_deg {
                            object_writer.write::<_, _, 8>(&prepared_latitude_deg);
                        }
                        if let ::core::option::Option::Some(prepared_longitude_deg) = prepared_longitude_deg {
                            object_writer.write::<_, _, 8>(&prepared_longitude_deg);
                        }
                        if let ::core::option::Option::Some(prepared_altitude_m) = prepared_altitude_m {
                            object_writer.write::<_, _, 8>(&prepared_altitude_m);
                        }
                        if let ::core::option::Option::Some(prepared_horizontal_error_m) =
                            prepared_horizontal_error_m
                        {
                            object_writer.write::<_, _, 4>(&prepared_horizontal_error_m);
                        }
                        if let ::core::option::Option::Some(prepared_satellites) = prepared_satellites {
                            object_writer.write::<_, _, 1>(&prepared_satellites);
                        }
                        if let ::core::option::Option::Some(prepared_fix) = prepared_fix {
                            object_writer.write::<_, _, 1>(&prepared_fix);
                        }
                    });
                }
                builder.current_offset()
            }
        }

        impl ::planus::WriteAs<::planus::Offset<Gps>> for Gps {
            type Prepared = ::planus::Offset<Self>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Gps> {
                ::planus::WriteAsOffset::prepare(self, builder)
            }
        }

        impl ::planus::WriteAsOptional<::planus::Offset<Gps>> for Gps {
            type Prepared = ::planus::Offset<Self>;

            #[inline]
            fn prepare(
                &self,
                builder: &mut ::planus::Builder,
            ) -> ::core::option::Option<::planus::Offset<Gps>> {
                ::core::option::Option::Some(::planus::WriteAsOffset::prepare(self, builder))
            }
        }

        impl ::planus::WriteAsOffset<Gps> for Gps {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Gps> {
                Gps::create(
                    builder,
                    self.latitude_deg,
                    self.longitude_deg,
                    self.altitude_m,
                    self.horizontal_error_m,
                    self.satellites,
                    self.fix,
                )
            }
        }

        /// Builder for serializing an instance of the [Gps] type.
        ///
        /// Can be created using the [Gps::builder] method.
        #[derive(Debug)]
        #[must_use]
        pub struct GpsBuilder<State>(State);

        impl GpsBuilder<()> {
            /// Setter for the [`latitude_deg` field](Gps#structfield.latitude_deg).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn latitude_deg<T0>(self, value: T0) -> GpsBuilder<(T0,)>
            where
                T0: ::planus::WriteAsDefault<f64, f64>,
            {
                GpsBuilder((value,))
            }

            /// Sets the [`latitude_deg` field](Gps#structfield.latitude_deg) to the default value.
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn latitude_deg_as_default(self) -> GpsBuilder<(::planus::DefaultValue,)> {
                self.latitude_deg(::planus::DefaultValue)
            }
        }

        impl<T0> GpsBuilder<(T0,)> {
            /// Setter for the [`longitude_deg` field](Gps#structfield.longitude_deg).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn longitude_deg<T1>(self, value: T1) -> GpsBuilder<(T0, T1)>
            where
                T1: ::planus::WriteAsDefault<f64, f64>,
            {
                let (v0,) = self.0;
                GpsBuilder((v0, value))
            }

            /// Sets the [`longitude_deg` field](Gps#structfield.longitude_deg) to the default value.
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn longitude_deg_as_default(self) -> GpsBuilder<(T0, ::planus::DefaultValue)> {
                self.longitude_deg(::planus::DefaultValue)
            }
        }

        impl<T0, T1> GpsBuilder<(T0, T1)> {
            /// Setter for the [`altitude_m` field](Gps#structfield.altitude_m).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn altitude_m<T2>(self, value: T2) -> GpsBuilder<(T0, T1, T2)>
            where
                T2: ::planus::WriteAsDefault<f64, f64>,
            {
                let (v0, v1) = self.0;
                GpsBuilder((v0, v1, value))
            }

            /// Sets the [`altitude_m` field](Gps#structfield.altitude_m) to the default value.
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn altitude_m_as_default(self) -> GpsBuilder<(T0, T1, ::planus::DefaultValue)> {
                self.altitude_m(::planus::DefaultValue)
            }
        }

        impl<T0, T1, T2> GpsBuilder<(T0, T1, T2)> {
            /// Setter for the [`horizontal_error_m` field](Gps#structfield.horizontal_error_m).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn horizontal_error_m<T3>(self, value: T3) -> GpsBuilder<(T0, T1, T2, T3)>
            where
                T3: ::planus::WriteAsDefault<f32, f32>,
            {
                let (v0, v1, v2) = self.0;
                GpsBuilder((v0, v1, v2, value))
            }

            /// Sets the [`horizontal_error_m` field](Gps#structfield.horizontal_error_m) to the default value.
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn horizontal_error_m_as_default(self) -> GpsBuilder<(T0, T1, T2, ::planus::DefaultValue)> {
                self.horizontal_error_m(::planus::DefaultValue)
            }
        }

        impl<T0, T1, T2, T3> GpsBuilder<(T0, T1, T2, T3)> {
            /// Setter for the [`satellites` field](Gps#structfield.satellites).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn satellites<T4>(self, value: T4) -> GpsBuilder<(T0, T1, T2, T3, T4)>
            where
                T4: ::planus::WriteAsDefault<u8, u8>,
            {
                let (v0, v1, v2, v3) = self.0;
                GpsBuilder((v0, v1, v2, v3, value))
            }

            /// Sets the [`satellites` field](Gps#structfield.satellites) to the default value.
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn satellites_as_default(self) -> GpsBuilder<(T0, T1, T2, T3, ::planus::DefaultValue)> {
                self.satellites(::planus::DefaultValue)
            }
        }

        impl<T0, T1, T2, T3, T4> GpsBuilder<(T0, T1, T2, T3, T4)> {
            /// Setter for the [`fix` field](Gps#structfield.fix).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn fix<T5>(self, value: T5) -> GpsBuilder<(T0, T1, T2, T3, T4, T5)>
            where
                T5: ::planus::WriteAsDefault<u8, u8>,
            {
                let (v0, v1, v2, v3, v4) = self.0;
                GpsBuilder((v0, v1, v2, v3, v4, value))
            }

            /// Sets the [`fix` field](Gps#structfield.fix) to the default value.
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn fix_as_default(self) -> GpsBuilder<(T0, T1, T2, T3, T4, ::planus::DefaultValue)> {
                self.fix(::planus::DefaultValue)
            }
        }

        impl<T0, T1, T2, T3, T4, T5> GpsBuilder<(T0, T1, T2, T3, T4, T5)> {
            /// Finish writing the builder to get an [Offset](::planus::Offset) to a serialized [Gps].
            #[inline]
            pub fn finish(self, builder: &mut ::planus::Builder) -> ::planus::Offset<Gps>
            where
                Self: ::planus::WriteAsOffset<Gps>,
            {
                ::planus::WriteAsOffset::prepare(&self, builder)
            }
        }

        impl<
            T0: ::planus::WriteAsDefault<f64, f64>,
            T1: ::planus::WriteAsDefault<f64, f64>,
            T2: ::planus::WriteAsDefault<f64, f64>,
            T3: ::planus::WriteAsDefault<f32, f32>,
            T4: ::planus::WriteAsDefault<u8, u8>,
            T5: ::planus::WriteAsDefault<u8, u8>,
        > ::planus::WriteAs<::planus::Offset<Gps>> for GpsBuilder<(T0, T1, T2, T3, T4, T5)>
        {
            type Prepared = ::planus::Offset<Gps>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Gps> {
                ::planus::WriteAsOffset::prepare(self, builder)
            }
        }

        impl<
            T0: ::planus::WriteAsDefault<f64, f64>,
            T1: ::planus::WriteAsDefault<f64, f64>,
            T2: ::planus::WriteAsDefault<f64, f64>,
            T3: ::planus::WriteAsDefault<f32, f32>,
            T4: ::planus::WriteAsDefault<u8, u8>,
            T5: ::planus::WriteAsDefault<u8, u8>,
        > ::planus::WriteAsOptional<::planus::Offset<Gps>> for GpsBuilder<(T0, T1, T2, T3, T4, T5)>
        {
            type Prepared = ::planus::Offset<Gps>;

            #[inline]
            fn prepare(
                &self,
                builder: &mut ::planus::Builder,
            ) -> ::core::option::Option<::planus::Offset<Gps>> {
                ::core::option::Option::Some(::planus::WriteAsOffset::prepare(self, builder))
            }
        }

        impl<
            T0: ::planus::WriteAsDefault<f64, f64>,
            T1: ::planus::WriteAsDefault<f64, f64>,
            T2: ::planus::WriteAsDefault<f64, f64>,
            T3: ::planus::WriteAsDefault<f32, f32>,
            T4: ::planus::WriteAsDefault<u8, u8>,
            T5: ::planus::WriteAsDefault<u8, u8>,
        > ::planus::WriteAsOffset<Gps> for GpsBuilder<(T0, T1, T2, T3, T4, T5)>
        {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Gps> {
                let (v0, v1, v2, v3, v4, v5) = &self.0;
                Gps::create(builder, v0, v1, v2, v3, v4, v5)
            }
        }

        /// Reference to a deserialized [Gps].
        #[derive(Copy, Clone)]
        pub struct GpsRef<'a>(#[allow(dead_code)] ::planus::table_reader::Table<'a>);

        impl<'a> GpsRef<'a> {
            /// Getter for the [`latitude_deg` field](Gps#structfield.latitude_deg).
            #[inline]
            pub fn latitude_deg(&self) -> ::planus::Result<f64> {
                ::core::result::Result::Ok(self.0.access(0, "Gps", "latitude_deg")?.unwrap_or(0.0))
            }

            /// Getter for the [`longitude_deg` field](Gps#structfield.longitude_deg).
            #[inline]
            pub fn longitude_deg(&self) -> ::planus::Result<f64> {
                ::core::result::Result::Ok(self.0.access(1, "Gps", "longitude_deg")?.unwrap_or(0.0))
            }

            /// Getter for the [`altitude_m` field](Gps#structfield.altitude_m).
            #[inline]
            pub fn altitude_m(&self) -> ::planus::Result<f64> {
                ::core::result::Result::Ok(self.0.access(2, "Gps", "altitude_m")?.unwrap_or(0.0))
            }

            /// Getter for the [`horizontal_error_m` field](Gps#structfield.horizontal_error_m).
            #[inline]
            pub fn horizontal_error_m(&self) -> ::planus::Result<f32> {
                ::core::result::Result::Ok(self.0.access(3, "Gps", "horizontal_error_m")?.unwrap_or(0.0))
            }

            /// Getter for the [`satellites` field](Gps#structfield.satellites).
            #[inline]
            pub fn satellites(&self) -> ::planus::Result<u8> {
                ::core::result::Result::Ok(self.0.access(4, "Gps", "satellites")?.unwrap_or(0))
            }

            /// Getter for the [`fix` field](Gps#structfield.fix).
            #[inline]
            pub fn fix(&self) -> ::planus::Result<u8> {
                ::core::result::Result::Ok(self.0.access(5, "Gps", "fix")?.unwrap_or(0))
            }
        }

        impl<'a> ::core::fmt::Debug for GpsRef<'a> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                let mut f = f.debug_struct("GpsRef");
                f.field("latitude_deg", &self.latitude_deg());
                f.field("longitude_deg", &self.longitude_deg());
                f.field("altitude_m", &self.altitude_m());
                f.field("horizontal_error_m", &self.horizontal_error_m());
                f.field("satellites", &self.satellites());
                f.field("fix", &self.fix());
                f.finish()
            }
        }

        impl<'a> ::core::convert::TryFrom<GpsRef<'a>> for Gps {
            type Error = ::planus::Error;

            #[allow(unreachable_code)]
            fn try_from(value: GpsRef<'a>) -> ::planus::Result<Self> {
                ::core::result::Result::Ok(Self {
                    latitude_deg: ::core::convert::TryInto::try_into(value.latitude_deg()?)?,
                    longitude_deg: ::core::convert::TryInto::try_into(value.longitude_deg()?)?,
                    altitude_m: ::core::convert::TryInto::try_into(value.altitude_m()?)?,
                    horizontal_error_m: ::core::convert::TryInto::try_into(value.horizontal_error_m()?)?,
                    satellites: ::core::convert::TryInto::try_into(value.satellites()?)?,
                    fix: ::core::convert::TryInto::try_into(value.fix()?)?,
                })
            }
        }

        impl<'a> ::planus::TableRead<'a> for GpsRef<'a> {
            #[inline]
            fn from_buffer(
                buffer: ::planus::SliceWithStartOffset<'a>,
                offset: usize,
            ) -> ::core::result::Result<Self, ::planus::errors::ErrorKind> {
                ::core::result::Result::Ok(Self(::planus::table_reader::Table::from_buffer(buffer, offset)?))
            }
        }

        impl<'a> ::planus::VectorReadInner<'a> for GpsRef<'a> {
            type Error = ::planus::Error;
            const STRIDE: usize = 4;

            unsafe fn from_buffer(
                buffer: ::planus::SliceWithStartOffset<'a>,
                offset: usize,
            ) -> ::planus::Result<Self> {
                ::planus::TableRead::from_buffer(buffer, offset).map_err(|error_kind| {
                    error_kind.with_error_location("[GpsRef]", "get", buffer.offset_from_start)
                })
            }
        }

        /// # Safety
        /// The planus compiler generates implementations that initialize
        /// the bytes in `write_values`.
        unsafe impl ::planus::VectorWrite<::planus::Offset<Gps>> for Gps {
            type Value = ::planus::Offset<Gps>;
            const STRIDE: usize = 4;
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> Self::Value {
                ::planus::WriteAs::prepare(self, builder)
            }

            #[inline]
            unsafe fn write_values(
                values: &[::planus::Offset<Gps>],
                bytes: *mut ::core::mem::MaybeUninit<u8>,
                buffer_position: u32,
            ) {
                let bytes = bytes as *mut [::core::mem::MaybeUninit<u8>; 4];
                for (i, v) in ::core::iter::Iterator::enumerate(values.iter()) {
                    ::planus::WriteAsPrimitive::write(
                        v,
                        ::planus::Cursor::new(unsafe { &mut *bytes.add(i) }),
                        buffer_position - (Self::STRIDE * i) as u32,
                    );
                }
            }
        }

        impl<'a> ::planus::ReadAsRoot<'a> for GpsRef<'a> {
            fn read_as_root(slice: &'a [u8]) -> ::planus::Result<Self> {
                ::planus::TableRead::from_buffer(
                    ::planus::SliceWithStartOffset { buffer: slice, offset_from_start: 0 },
                    0,
                )
                .map_err(|error_kind| error_kind.with_error_location("[GpsRef]", "read_as_root", 0))
            }
        }

        /// The table `Parameter` in the namespace `uav`
        ///
        /// Generated from these locations:
        /// * Table `Parameter` in the file `schemas/uav_state.fbs:46`
        #[derive(Clone, Debug, PartialEq, PartialOrd, ::serde::Serialize, ::serde::Deserialize)]
        pub struct Parameter {
            /// The field `name` in the table `Parameter`
            pub name: ::planus::alloc::string::String,
            /// The field `value` in the table `Parameter`
            pub value: f64,
        }

        #[allow(clippy::derivable_impls)]
        impl ::core::default::Default for Parameter {
            fn default() -> Self {
                Self { name: ::core::default::Default::default(), value: 0.0 }
            }
        }

        impl Parameter {
            /// Creates a [ParameterBuilder] for serializing an instance of this table.
            #[inline]
            pub fn builder() -> ParameterBuilder<()> {
                ParameterBuilder(())
            }

            #[allow(clippy::too_many_arguments)]
            pub fn create(
                builder: &mut ::planus::Builder,
                field_name: impl ::planus::WriteAs<::planus::Offset<str>>,
                field_value: impl ::planus::WriteAsDefault<f64, f64>,
            ) -> ::planus::Offset<Self> {
                let prepared_name = field_name.prepare(builder);
                let prepared_value = field_value.prepare(builder, &0.0);

                let mut table_writer: ::planus::table_writer::TableWriter<8> =
                    ::core::default::Default::default();
                if prepared_value.is_some() {
                    table_writer.write_entry::<f64>(1);
                }
                table_writer.write_entry::<::planus::Offset<str>>(0);

                unsafe {
                    table_writer.finish(builder, |object_writer| {
                        if let ::core::option::Option::Some(prepared_value) = prepared_value {
                            object_writer.write::<_, _, 8>(&prepared_value);
                        }
                        object_writer.write::<_, _, 4>(&prepared_name);
                    });
                }
                builder.current_offset()
            }
        }

        impl ::planus::WriteAs<::planus::Offset<Parameter>> for Parameter {
            type Prepared = ::planus::Offset<Self>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Parameter> {
                ::planus::WriteAsOffset::prepare(self, builder)
            }
        }

        impl ::planus::WriteAsOptional<::planus::Offset<Parameter>> for Parameter {
            type Prepared = ::planus::Offset<Self>;

            #[inline]
            fn prepare(
                &self,
                builder: &mut ::planus::Builder,
            ) -> ::core::option::Option<::planus::Offset<Parameter>> {
                ::core::option::Option::Some(::planus::WriteAsOffset::prepare(self, builder))
            }
        }

        impl ::planus::WriteAsOffset<Parameter> for Parameter {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Parameter> {
                Parameter::create(builder, &self.name, self.value)
            }
        }

        /// Builder for serializing an instance of the [Parameter] type.
        ///
        /// Can be created using the [Parameter::builder] method.
        #[derive(Debug)]
        #[must_use]
        pub struct ParameterBuilder<State>(State);

        impl ParameterBuilder<()> {
            /// Setter for the [`name` field](Parameter#structfield.name).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn name<T0>(self, value: T0) -> ParameterBuilder<(T0,)>
            where
                T0: ::planus::WriteAs<::planus::Offset<str>>,
            {
                ParameterBuilder((value,))
            }
        }

        impl<T0> ParameterBuilder<(T0,)> {
            /// Setter for the [`value` field](Parameter#structfield.value).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn value<T1>(self, value: T1) -> ParameterBuilder<(T0, T1)>
            where
                T1: ::planus::WriteAsDefault<f64, f64>,
            {
                let (v0,) = self.0;
                ParameterBuilder((v0, value))
            }

            /// Sets the [`value` field](Parameter#structfield.value) to the default value.
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn value_as_default(self) -> ParameterBuilder<(T0, ::planus::DefaultValue)> {
                self.value(::planus::DefaultValue)
            }
        }

        impl<T0, T1> ParameterBuilder<(T0, T1)> {
            /// Finish writing the builder to get an [Offset](::planus::Offset) to a serialized [Parameter].
            #[inline]
            pub fn finish(self, builder: &mut ::planus::Builder) -> ::planus::Offset<Parameter>
            where
                Self: ::planus::WriteAsOffset<Parameter>,
            {
                ::planus::WriteAsOffset::prepare(&self, builder)
            }
        }

        impl<T0: ::planus::WriteAs<::planus::Offset<str>>, T1: ::planus::WriteAsDefault<f64, f64>>
            ::planus::WriteAs<::planus::Offset<Parameter>> for ParameterBuilder<(T0, T1)>
        {
            type Prepared = ::planus::Offset<Parameter>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Parameter> {
                ::planus::WriteAsOffset::prepare(self, builder)
            }
        }

        impl<T0: ::planus::WriteAs<::planus::Offset<str>>, T1: ::planus::WriteAsDefault<f64, f64>>
            ::planus::WriteAsOptional<::planus::Offset<Parameter>> for ParameterBuilder<(T0, T1)>
        {
            type Prepared = ::planus::Offset<Parameter>;

            #[inline]
            fn prepare(
                &self,
                builder: &mut ::planus::Builder,
            ) -> ::core::option::Option<::planus::Offset<Parameter>> {
                ::core::option::Option::Some(::planus::WriteAsOffset::prepare(self, builder))
            }
        }

        impl<T0: ::planus::WriteAs<::planus::Offset<str>>, T1: ::planus::WriteAsDefault<f64, f64>>
            ::planus::WriteAsOffset<Parameter> for ParameterBuilder<(T0, T1)>
        {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Parameter> {
                let (v0, v1) = &self.0;
                Parameter::create(builder, v0, v1)
            }
        }

        /// Reference to a deserialized [Parameter].
        #[derive(Copy, Clone)]
        pub struct ParameterRef<'a>(#[allow(dead_code)] ::planus::table_reader::Table<'a>);

        impl<'a> ParameterRef<'a> {
            /// Getter for the [`name` field](Parameter#structfield.name).
            #[inline]
            pub fn name(&self) -> ::planus::Result<&'a ::core::primitive::str> {
                self.0.access_required(0, "Parameter", "name")
            }

            /// Getter for the [`value` field](Parameter#structfield.value).
            #[inline]
            pub fn value(&self) -> ::planus::Result<f64> {
                ::core::result::Result::Ok(self.0.access(1, "Parameter", "value")?.unwrap_or(0.0))
            }
        }

        impl<'a> ::core::fmt::Debug for ParameterRef<'a> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                let mut f = f.debug_struct("ParameterRef");
                f.field("name", &self.name());
                f.field("value", &self.value());
                f.finish()
            }
        }

        impl<'a> ::core::convert::TryFrom<ParameterRef<'a>> for Parameter {
            type Error = ::planus::Error;

            #[allow(unreachable_code)]
            fn try_from(value: ParameterRef<'a>) -> ::planus::Result<Self> {
                ::core::result::Result::Ok(Self {
                    name: ::core::convert::Into::into(value.name()?),
                    value: ::core::convert::TryInto::try_into(value.value()?)?,
                })
            }
        }

        impl<'a> ::planus::TableRead<'a> for ParameterRef<'a> {
            #[inline]
            fn from_buffer(
                buffer: ::planus::SliceWithStartOffset<'a>,
                offset: usize,
            ) -> ::core::result::Result<Self, ::planus::errors::ErrorKind> {
                ::core::result::Result::Ok(Self(::planus::table_reader::Table::from_buffer(buffer, offset)?))
            }
        }

        impl<'a> ::planus::VectorReadInner<'a> for ParameterRef<'a> {
            type Error = ::planus::Error;
            const STRIDE: usize = 4;

            unsafe fn from_buffer(
                buffer: ::planus::SliceWithStartOffset<'a>,
                offset: usize,
            ) -> ::planus::Result<Self> {
                ::planus::TableRead::from_buffer(buffer, offset).map_err(|error_kind| {
                    error_kind.with_error_location("[ParameterRef]", "get", buffer.offset_from_start)
                })
            }
        }

        /// # Safety
        /// The planus compiler generates implementations that initialize
        /// the bytes in `write_values`.
        unsafe impl ::planus::VectorWrite<::planus::Offset<Parameter>> for Parameter {
            type Value = ::planus::Offset<Parameter>;
            const STRIDE: usize = 4;
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> Self::Value {
                ::planus::WriteAs::prepare(self, builder)
            }

            #[inline]
            unsafe fn write_values(
                values: &[::planus::Offset<Parameter>],
                bytes: *mut ::core::mem::MaybeUninit<u8>,
                buffer_position: u32,
            ) {
                let bytes = bytes as *mut [::core::mem::MaybeUninit<u8>; 4];
                for (i, v) in ::core::iter::Iterator::enumerate(values.iter()) {
                    ::planus::WriteAsPrimitive::write(
                        v,
                        ::planus::Cursor::new(unsafe { &mut *bytes.add(i) }),
                        buffer_position - (Self::STRIDE * i) as u32,
                    );
                }
            }
        }

        impl<'a> ::planus::ReadAsRoot<'a> for ParameterRef<'a> {
            fn read_as_root(slice: &'a [u8]) -> ::planus::Result<Self> {
                ::planus::TableRead::from_buffer(
                    ::planus::SliceWithStartOffset { buffer: slice, offset_from_start: 0 },
                    0,
                )
                .map_err(|error_kind| error_kind.with_error_location("[ParameterRef]", "read_as_root", 0))
            }
        }

        /// The table `UavState` in the namespace `uav`
        ///
        /// Generated from these locations:
        /// * Table `UavState` in the file `schemas/uav_state.fbs:51`
        #[derive(Clone, Debug, PartialEq, PartialOrd, ::serde::Serialize, ::serde::Deserialize)]
        pub struct UavState {
            /// The field `header` in the table `UavState`
            pub header: ::planus::alloc::boxed::Box<self::Header>,
            /// The field `position_m` in the table `UavState`
            pub position_m: ::planus::alloc::vec::Vec<f64>,
            /// The field `attitude` in the table `UavState`
            pub attitude: ::planus::alloc::vec::Vec<f64>,
            /// The field `velocity_m_s` in the table `UavState`
            pub velocity_m_s: ::planus::alloc::vec::Vec<f32>,
            /// The field `pose_covariance` in the table `UavState`
            pub pose_covariance: ::planus::alloc::vec::Vec<f32>,
            /// The field `velocity_covariance` in the table `UavState`
            pub velocity_covariance: ::planus::alloc::vec::Vec<f32>,
            /// The field `imu` in the table `UavState`
            pub imu: ::planus::alloc::boxed::Box<self::Imu>,
            /// The field `battery` in the table `UavState`
            pub battery: ::planus::alloc::boxed::Box<self::Battery>,
            /// The field `gps` in the table `UavState`
            pub gps: ::planus::alloc::boxed::Box<self::Gps>,
            /// The field `armed` in the table `UavState`
            pub armed: bool,
            /// The field `mode` in the table `UavState`
            pub mode: u8,
            /// The field `status_text` in the table `UavState`
            pub status_text: ::planus::alloc::string::String,
            /// The field `parameters` in the table `UavState`
            pub parameters: ::planus::alloc::vec::Vec<self::Parameter>,
            /// The field `waypoints` in the table `UavState`
            pub waypoints: ::planus::alloc::vec::Vec<self::Waypoint>,
            /// The field `points` in the table `UavState`
            pub points: ::planus::alloc::vec::Vec<self::Point>,
        }

        #[allow(clippy::derivable_impls)]
        impl ::core::default::Default for UavState {
            fn default() -> Self {
                Self {
                    header: ::core::default::Default::default(),
                    position_m: ::core::default::Default::default(),
                    attitude: ::core::default::Default::default(),
                    velocity_m_s: ::core::default::Default::default(),
                    pose_covariance: ::core::default::Default::default(),
                    velocity_covariance: ::core::default::Default::default(),
                    imu: ::core::default::Default::default(),
                    battery: ::core::default::Default::default(),
                    gps: ::core::default::Default::default(),
                    armed: false,
                    mode: 0,
                    status_text: ::core::default::Default::default(),
                    parameters: ::core::default::Default::default(),
                    waypoints: ::core::default::Default::default(),
                    points: ::core::default::Default::default(),
                }
            }
        }

        impl UavState {
            /// Creates a [UavStateBuilder] for serializing an instance of this table.
            #[inline]
            pub fn builder() -> UavStateBuilder<()> {
                UavStateBuilder(())
            }

            #[allow(clippy::too_many_arguments)]
            pub fn create(
                builder: &mut ::planus::Builder,
                field_header: impl ::planus::WriteAs<::planus::Offset<self::Header>>,
                field_position_m: impl ::planus::WriteAs<::planus::Offset<[f64]>>,
                field_attitude: impl ::planus::WriteAs<::planus::Offset<[f64]>>,
                field_velocity_m_s: impl ::planus::WriteAs<::planus::Offset<[f32]>>,
                field_pose_covariance: impl ::planus::WriteAs<::planus::Offset<[f32]>>,
                field_velocity_covariance: impl ::planus::WriteAs<::planus::Offset<[f32]>>,
                field_imu: impl ::planus::WriteAs<::planus::Offset<self::Imu>>,
                field_battery: impl ::planus::WriteAs<::planus::Offset<self::Battery>>,
                field_gps: impl ::planus::WriteAs<::planus::Offset<self::Gps>>,
                field_armed: impl ::planus::WriteAsDefault<bool, bool>,
                field_mode: impl ::planus::WriteAsDefault<u8, u8>,
                field_status_text: impl ::planus::WriteAs<::planus::Offset<str>>,
                field_parameters: impl ::planus::WriteAs<::planus::Offset<[::planus::Offset<self::Parameter>]>>,
                field_waypoints: impl ::planus::WriteAs<::planus::Offset<[self::Waypoint]>>,
                field_points: impl ::planus::WriteAs<::planus::Offset<[self::Point]>>,
            ) -> ::planus::Offset<Self> {
                let prepared_header = field_header.prepare(builder);
                let prepared_position_m = field_position_m.prepare(builder);
                let prepared_attitude = field_attitude.prepare(builder);
                let prepared_velocity_m_s = field_velocity_m_s.prepare(builder);
                let prepared_pose_covariance = field_pose_covariance.prepare(builder);
                let prepared_velocity_covariance = field_velocity_covariance.prepare(builder);
                let prepared_imu = field_imu.prepare(builder);
                let prepared_battery = field_battery.prepare(builder);
                let prepared_gps = field_gps.prepare(builder);
                let prepared_armed = field_armed.prepare(builder, &false);
                let prepared_mode = field_mode.prepare(builder, &0);
                let prepared_status_text = field_status_text.prepare(builder);
                let prepared_parameters = field_parameters.prepare(builder);
                let prepared_waypoints = field_waypoints.prepare(builder);
                let prepared_points = field_points.prepare(builder);

                let mut table_writer: ::planus::table_writer::TableWriter<34> =
                    ::core::default::Default::default();
                table_writer.write_entry::<::planus::Offset<self::Header>>(0);
                table_writer.write_entry::<::planus::Offset<[f64]>>(1);
                table_writer.write_entry::<::planus::Offset<[f64]>>(2);
                table_writer.write_entry::<::planus::Offset<[f32]>>(3);
                table_writer.write_entry::<::planus::Offset<[f32]>>(4);
                table_writer.write_entry::<::planus::Offset<[f32]>>(5);
                table_writer.write_entry::<::planus::Offset<self::Imu>>(6);
                table_writer.write_entry::<::planus::Offset<self::Battery>>(7);
                table_writer.write_entry::<::planus::Offset<self::Gps>>(8);
                table_writer.write_entry::<::planus::Offset<str>>(11);
                table_writer.write_entry::<::planus::Offset<[::planus::Offset<self::Parameter>]>>(12);
                table_writer.write_entry::<::planus::Offset<[self::Waypoint]>>(13);
                table_writer.write_entry::<::planus::Offset<[self::Point]>>(14);
                if prepared_armed.is_some() {
                    table_writer.write_entry::<bool>(9);
                }
                if prepared_mode.is_some() {
                    table_writer.write_entry::<u8>(10);
                }

                unsafe {
                    table_writer.finish(builder, |object_writer| {
                        object_writer.write::<_, _, 4>(&prepared_header);
                        object_writer.write::<_, _, 4>(&prepared_position_m);
                        object_writer.write::<_, _, 4>(&prepared_attitude);
                        object_writer.write::<_, _, 4>(&prepared_velocity_m_s);
                        object_writer.write::<_, _, 4>(&prepared_pose_covariance);
                        object_writer.write::<_, _, 4>(&prepared_velocity_covariance);
                        object_writer.write::<_, _, 4>(&prepared_imu);
                        object_writer.write::<_, _, 4>(&prepared_battery);
                        object_writer.write::<_, _, 4>(&prepared_gps);
                        object_writer.write::<_, _, 4>(&prepared_status_text);
                        object_writer.write::<_, _, 4>(&prepared_parameters);
                        object_writer.write::<_, _, 4>(&prepared_waypoints);
                        object_writer.write::<_, _, 4>(&prepared_points);
                        if let ::core::option::Option::Some(prepared_armed) = prepared_armed {
                            object_writer.write::<_, _, 1>(&prepared_armed);
                        }
                        if let ::core::option::Option::Some(prepared_mode) = prepared_mode {
                            object_writer.write::<_, _, 1>(&prepared_mode);
                        }
                    });
                }
                builder.current_offset()
            }
        }

        impl ::planus::WriteAs<::planus::Offset<UavState>> for UavState {
            type Prepared = ::planus::Offset<Self>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<UavState> {
                ::planus::WriteAsOffset::prepare(self, builder)
            }
        }

        impl ::planus::WriteAsOptional<::planus::Offset<UavState>> for UavState {
            type Prepared = ::planus::Offset<Self>;

            #[inline]
            fn prepare(
                &self,
                builder: &mut ::planus::Builder,
            ) -> ::core::option::Option<::planus::Offset<UavState>> {
                ::core::option::Option::Some(::planus::WriteAsOffset::prepare(self, builder))
            }
        }

        impl ::planus::WriteAsOffset<UavState> for UavState {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<UavState> {
                UavState::create(
                    builder,
                    &self.header,
                    &self.position_m,
                    &self.attitude,
                    &self.velocity_m_s,
                    &self.pose_covariance,
                    &self.velocity_covariance,
                    &self.imu,
                    &self.battery,
                    &self.gps,
                    self.armed,
                    self.mode,
                    &self.status_text,
                    &self.parameters,
                    &self.waypoints,
                    &self.points,
                )
            }
        }

        /// Builder for serializing an instance of the [UavState] type.
        ///
        /// Can be created using the [UavState::builder] method.
        #[derive(Debug)]
        #[must_use]
        pub struct UavStateBuilder<State>(State);

        impl UavStateBuilder<()> {
            /// Setter for the [`header` field](UavState#structfield.header).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn header<T0>(self, value: T0) -> UavStateBuilder<(T0,)>
            where
                T0: ::planus::WriteAs<::planus::Offset<self::Header>>,
            {
                UavStateBuilder((value,))
            }
        }

        impl<T0> UavStateBuilder<(T0,)> {
            /// Setter for the [`position_m` field](UavState#structfield.position_m).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn position_m<T1>(self, value: T1) -> UavStateBuilder<(T0, T1)>
            where
                T1: ::planus::WriteAs<::planus::Offset<[f64]>>,
            {
                let (v0,) = self.0;
                UavStateBuilder((v0, value))
            }
        }

        impl<T0, T1> UavStateBuilder<(T0, T1)> {
            /// Setter for the [`attitude` field](UavState#structfield.attitude).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn attitude<T2>(self, value: T2) -> UavStateBuilder<(T0, T1, T2)>
            where
                T2: ::planus::WriteAs<::planus::Offset<[f64]>>,
            {
                let (v0, v1) = self.0;
                UavStateBuilder((v0, v1, value))
            }
        }

        impl<T0, T1, T2> UavStateBuilder<(T0, T1, T2)> {
            /// Setter for the [`velocity_m_s` field](UavState#structfield.velocity_m_s).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn velocity_m_s<T3>(self, value: T3) -> UavStateBuilder<(T0, T1, T2, T3)>
            where
                T3: ::planus::WriteAs<::planus::Offset<[f32]>>,
            {
                let (v0, v1, v2) = self.0;
                UavStateBuilder((v0, v1, v2, value))
            }
        }

        impl<T0, T1, T2, T3> UavStateBuilder<(T0, T1, T2, T3)> {
            /// Setter for the [`pose_covariance` field](UavState#structfield.pose_covariance).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn pose_covariance<T4>(self, value: T4) -> UavStateBuilder<(T0, T1, T2, T3, T4)>
            where
                T4: ::planus::WriteAs<::planus::Offset<[f32]>>,
            {
                let (v0, v1, v2, v3) = self.0;
                UavStateBuilder((v0, v1, v2, v3, value))
            }
        }

        impl<T0, T1, T2, T3, T4> UavStateBuilder<(T0, T1, T2, T3, T4)> {
            /// Setter for the [`velocity_covariance` field](UavState#structfield.velocity_covariance).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn velocity_covariance<T5>(self, value: T5) -> UavStateBuilder<(T0, T1, T2, T3, T4, T5)>
            where
                T5: ::planus::WriteAs<::planus::Offset<[f32]>>,
            {
                let (v0, v1, v2, v3, v4) = self.0;
                UavStateBuilder((v0, v1, v2, v3, v4, value))
            }
        }

        impl<T0, T1, T2, T3, T4, T5> UavStateBuilder<(T0, T1, T2, T3, T4, T5)> {
            /// Setter for the [`imu` field](UavState#structfield.imu).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn imu<T6>(self, value: T6) -> UavStateBuilder<(T0, T1, T2, T3, T4, T5, T6)>
            where
                T6: ::planus::WriteAs<::planus::Offset<self::Imu>>,
            {
                let (v0, v1, v2, v3, v4, v5) = self.0;
                UavStateBuilder((v0, v1, v2, v3, v4, v5, value))
            }
        }

        impl<T0, T1, T2, T3, T4, T5, T6> UavStateBuilder<(T0, T1, T2, T3, T4, T5, T6)> {
            /// Setter for the [`battery` field](UavState#structfield.battery).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn battery<T7>(self, value: T7) -> UavStateBuilder<(T0, T1, T2, T3, T4, T5, T6, T7)>
            where
                T7: ::planus::WriteAs<::planus::Offset<self::Battery>>,
            {
                let (v0, v1, v2, v3, v4, v5, v6) = self.0;
                UavStateBuilder((v0, v1, v2, v3, v4, v5, v6, value))
            }
        }

        impl<T0, T1, T2, T3, T4, T5, T6, T7> UavStateBuilder<(T0, T1, T2, T3, T4, T5, T6, T7)> {
            /// Setter for the [`gps` field](UavState#structfield.gps).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn gps<T8>(self, value: T8) -> UavStateBuilder<(T0, T1, T2, T3, T4, T5, T6, T7, T8)>
            where
                T8: ::planus::WriteAs<::planus::Offset<self::Gps>>,
            {
                let (v0, v1, v2, v3, v4, v5, v6, v7) = self.0;
                UavStateBuilder((v0, v1, v2, v3, v4, v5, v6, v7, value))
            }
        }

        impl<T0, T1, T2, T3, T4, T5, T6, T7, T8> UavStateBuilder<(T0, T1, T2, T3, T4, T5, T6, T7, T8)> {
            /// Setter for the [`armed` field](UavState#structfield.armed).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn armed<T9>(self, value: T9) -> UavStateBuilder<(T0, T1, T2, T3, T4, T5, T6, T7, T8, T9)>
            where
                T9: ::planus::WriteAsDefault<bool, bool>,
            {
                let (v0, v1, v2, v3, v4, v5, v6, v7, v8) = self.0;
                UavStateBuilder((v0, v1, v2, v3, v4, v5, v6, v7, v8, value))
            }

            /// Sets the [`armed` field](UavState#structfield.armed) to the default value.
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn armed_as_default(
                self,
            ) -> UavStateBuilder<(T0, T1, T2, T3, T4, T5, T6, T7, T8, ::planus::DefaultValue)> {
                self.armed(::planus::DefaultValue)
            }
        }

        impl<T0, T1, T2, T3, T4, T5, T6, T7, T8, T9> UavStateBuilder<(T0, T1, T2, T3, T4, T5, T6, T7, T8, T9)> {
            /// Setter for the [`mode` field](UavState#structfield.mode).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn mode<T10>(
                self,
                value: T10,
            ) -> UavStateBuilder<(T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10)>
            where
                T10: ::planus::WriteAsDefault<u8, u8>,
            {
                let (v0, v1, v2, v3, v4, v5, v6, v7, v8, v9) = self.0;
                UavStateBuilder((v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, value))
            }

            /// Sets the [`mode` field](UavState#structfield.mode) to the default value.
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn mode_as_default(
                self,
            ) -> UavStateBuilder<(T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, ::planus::DefaultValue)>
            {
                self.mode(::planus::DefaultValue)
            }
        }

        impl<T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10>
            UavStateBuilder<(T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10)>
        {
            /// Setter for the [`status_text` field](UavState#structfield.status_text).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn status_text<T11>(
                self,
                value: T11,
            ) -> UavStateBuilder<(T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11)>
            where
                T11: ::planus::WriteAs<::planus::Offset<str>>,
            {
                let (v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10) = self.0;
                UavStateBuilder((v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, value))
            }
        }

        impl<T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11>
            UavStateBuilder<(T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11)>
        {
            /// Setter for the [`parameters` field](UavState#structfield.parameters).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn parameters<T12>(
                self,
                value: T12,
            ) -> UavStateBuilder<(T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12)>
            where
                T12: ::planus::WriteAs<::planus::Offset<[::planus::Offset<self::Parameter>]>>,
            {
                let (v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11) = self.0;
                UavStateBuilder((v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, value))
            }
        }

        impl<T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12>
            UavStateBuilder<(T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12)>
        {
            /// Setter for the [`waypoints` field](UavState#structfield.waypoints).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn waypoints<T13>(
                self,
                value: T13,
            ) -> UavStateBuilder<(T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13)>
            where
                T13: ::planus::WriteAs<::planus::Offset<[self::Waypoint]>>,
            {
                let (v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12) = self.0;
                UavStateBuilder((v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, value))
            }
        }

        impl<T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13>
            UavStateBuilder<(T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13)>
        {
            /// Setter for the [`points` field](UavState#structfield.points).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn points<T14>(
                self,
                value: T14,
            ) -> UavStateBuilder<(T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13, T14)>
            where
                T14: ::planus::WriteAs<::planus::Offset<[self::Point]>>,
            {
                let (v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13) = self.0;
                UavStateBuilder((v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, value))
            }
        }

        impl<T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13, T14>
            UavStateBuilder<(T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13, T14)>
        {
            /// Finish writing the builder to get an [Offset](::planus::Offset) to a serialized [UavState].
            #[inline]
            pub fn finish(self, builder: &mut ::planus::Builder) -> ::planus::Offset<UavState>
            where
                Self: ::planus::WriteAsOffset<UavState>,
            {
                ::planus::WriteAsOffset::prepare(&self, builder)
            }
        }

        impl<
            T0: ::planus::WriteAs<::planus::Offset<self::Header>>,
            T1: ::planus::WriteAs<::planus::Offset<[f64]>>,
            T2: ::planus::WriteAs<::planus::Offset<[f64]>>,
            T3: ::planus::WriteAs<::planus::Offset<[f32]>>,
            T4: ::planus::WriteAs<::planus::Offset<[f32]>>,
            T5: ::planus::WriteAs<::planus::Offset<[f32]>>,
            T6: ::planus::WriteAs<::planus::Offset<self::Imu>>,
            T7: ::planus::WriteAs<::planus::Offset<self::Battery>>,
            T8: ::planus::WriteAs<::planus::Offset<self::Gps>>,
            T9: ::planus::WriteAsDefault<bool, bool>,
            T10: ::planus::WriteAsDefault<u8, u8>,
            T11: ::planus::WriteAs<::planus::Offset<str>>,
            T12: ::planus::WriteAs<::planus::Offset<[::planus::Offset<self::Parameter>]>>,
            T13: ::planus::WriteAs<::planus::Offset<[self::Waypoint]>>,
            T14: ::planus::WriteAs<::planus::Offset<[self::Point]>>,
        > ::planus::WriteAs<::planus::Offset<UavState>>
            for UavStateBuilder<(T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13, T14)>
        {
            type Prepared = ::planus::Offset<UavState>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<UavState> {
                ::planus::WriteAsOffset::prepare(self, builder)
            }
        }

        impl<
            T0: ::planus::WriteAs<::planus::Offset<self::Header>>,
            T1: ::planus::WriteAs<::planus::Offset<[f64]>>,
            T2: ::planus::WriteAs<::planus::Offset<[f64]>>,
            T3: ::planus::WriteAs<::planus::Offset<[f32]>>,
            T4: ::planus::WriteAs<::planus::Offset<[f32]>>,
            T5: ::planus::WriteAs<::planus::Offset<[f32]>>,
            T6: ::planus::WriteAs<::planus::Offset<self::Imu>>,
            T7: ::planus::WriteAs<::planus::Offset<self::Battery>>,
            T8: ::planus::WriteAs<::planus::Offset<self::Gps>>,
            T9: ::planus::WriteAsDefault<bool, bool>,
            T10: ::planus::WriteAsDefault<u8, u8>,
            T11: ::planus::WriteAs<::planus::Offset<str>>,
            T12: ::planus::WriteAs<::planus::Offset<[::planus::Offset<self::Parameter>]>>,
            T13: ::planus::WriteAs<::planus::Offset<[self::Waypoint]>>,
            T14: ::planus::WriteAs<::planus::Offset<[self::Point]>>,
        > ::planus::WriteAsOptional<::planus::Offset<UavState>>
            for UavStateBuilder<(T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13, T14)>
        {
            type Prepared = ::planus::Offset<UavState>;

            #[inline]
            fn prepare(
                &self,
                builder: &mut ::planus::Builder,
            ) -> ::core::option::Option<::planus::Offset<UavState>> {
                ::core::option::Option::Some(::planus::WriteAsOffset::prepare(self, builder))
            }
        }

        impl<
            T0: ::planus::WriteAs<::planus::Offset<self::Header>>,
            T1: ::planus::WriteAs<::planus::Offset<[f64]>>,
            T2: ::planus::WriteAs<::planus::Offset<[f64]>>,
            T3: ::planus::WriteAs<::planus::Offset<[f32]>>,
            T4: ::planus::WriteAs<::planus::Offset<[f32]>>,
            T5: ::planus::WriteAs<::planus::Offset<[f32]>>,
            T6: ::planus::WriteAs<::planus::Offset<self::Imu>>,
            T7: ::planus::WriteAs<::planus::Offset<self::Battery>>,
            T8: ::planus::WriteAs<::planus::Offset<self::Gps>>,
            T9: ::planus::WriteAsDefault<bool, bool>,
            T10: ::planus::WriteAsDefault<u8, u8>,
            T11: ::planus::WriteAs<::planus::Offset<str>>,
            T12: ::planus::WriteAs<::planus::Offset<[::planus::Offset<self::Parameter>]>>,
            T13: ::planus::WriteAs<::planus::Offset<[self::Waypoint]>>,
            T14: ::planus::WriteAs<::planus::Offset<[self::Point]>>,
        > ::planus::WriteAsOffset<UavState>
            for UavStateBuilder<(T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13, T14)>
        {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<UavState> {
                let (v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14) = &self.0;
                UavState::create(builder, v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14)
            }
        }

        /// Reference to a deserialized [UavState].
        #[derive(Copy, Clone)]
        pub struct UavStateRef<'a>(#[allow(dead_code)] ::planus::table_reader::Table<'a>);

        impl<'a> UavStateRef<'a> {
            /// Getter for the [`header` field](UavState#structfield.header).
            #[inline]
            pub fn header(&self) -> ::planus::Result<self::HeaderRef<'a>> {
                self.0.access_required(0, "UavState", "header")
            }

            /// Getter for the [`position_m` field](UavState#structfield.position_m).
            #[inline]
            pub fn position_m(&self) -> ::planus::Result<::planus::Vector<'a, f64>> {
                self.0.access_required(1, "UavState", "position_m")
            }

            /// Getter for the [`attitude` field](UavState#structfield.attitude).
            #[inline]
            pub fn attitude(&self) -> ::planus::Result<::planus::Vector<'a, f64>> {
                self.0.access_required(2, "UavState", "attitude")
            }

            /// Getter for the [`velocity_m_s` field](UavState#structfield.velocity_m_s).
            #[inline]
            pub fn velocity_m_s(&self) -> ::planus::Result<::planus::Vector<'a, f32>> {
                self.0.access_required(3, "UavState", "velocity_m_s")
            }

            /// Getter for the [`pose_covariance` field](UavState#structfield.pose_covariance).
            #[inline]
            pub fn pose_covariance(&self) -> ::planus::Result<::planus::Vector<'a, f32>> {
                self.0.access_required(4, "UavState", "pose_covariance")
            }

            /// Getter for the [`velocity_covariance` field](UavState#structfield.velocity_covariance).
            #[inline]
            pub fn velocity_covariance(&self) -> ::planus::Result<::planus::Vector<'a, f32>> {
                self.0.access_required(5, "UavState", "velocity_covariance")
            }

            /// Getter for the [`imu` field](UavState#structfield.imu).
            #[inline]
            pub fn imu(&self) -> ::planus::Result<self::ImuRef<'a>> {
                self.0.access_required(6, "UavState", "imu")
            }

            /// Getter for the [`battery` field](UavState#structfield.battery).
            #[inline]
            pub fn battery(&self) -> ::planus::Result<self::BatteryRef<'a>> {
                self.0.access_required(7, "UavState", "battery")
            }

            /// Getter for the [`gps` field](UavState#structfield.gps).
            #[inline]
            pub fn gps(&self) -> ::planus::Result<self::GpsRef<'a>> {
                self.0.access_required(8, "UavState", "gps")
            }

            /// Getter for the [`armed` field](UavState#structfield.armed).
            #[inline]
            pub fn armed(&self) -> ::planus::Result<bool> {
                ::core::result::Result::Ok(self.0.access(9, "UavState", "armed")?.unwrap_or(false))
            }

            /// Getter for the [`mode` field](UavState#structfield.mode).
            #[inline]
            pub fn mode(&self) -> ::planus::Result<u8> {
                ::core::result::Result::Ok(self.0.access(10, "UavState", "mode")?.unwrap_or(0))
            }

            /// Getter for the [`status_text` field](UavState#structfield.status_text).
            #[inline]
            pub fn status_text(&self) -> ::planus::Result<&'a ::core::primitive::str> {
                self.0.access_required(11, "UavState", "status_text")
            }

            /// Getter for the [`parameters` field](UavState#structfield.parameters).
            #[inline]
            pub fn parameters(
                &self,
            ) -> ::planus::Result<::planus::Vector<'a, ::planus::Result<self::ParameterRef<'a>>>>
            {
                self.0.access_required(12, "UavState", "parameters")
            }

            /// Getter for the [`waypoints` field](UavState#structfield.waypoints).
            #[inline]
            pub fn waypoints(&self) -> ::planus::Result<::planus::Vector<'a, self::WaypointRef<'a>>> {
                self.0.access_required(13, "UavState", "waypoints")
            }

            /// Getter for the [`points` field](UavState#structfield.points).
            #[inline]
            pub fn points(&self) -> ::planus::Result<::planus::Vector<'a, self::PointRef<'a>>> {
                self.0.access_required(14, "UavState", "points")
            }
        }

        impl<'a> ::core::fmt::Debug for UavStateRef<'a> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                let mut f = f.debug_struct("UavStateRef");
                f.field("header", &self.header());
                f.field("position_m", &self.position_m());
                f.field("attitude", &self.attitude());
                f.field("velocity_m_s", &self.velocity_m_s());
                f.field("pose_covariance", &self.pose_covariance());
                f.field("velocity_covariance", &self.velocity_covariance());
                f.field("imu", &self.imu());
                f.field("battery", &self.battery());
                f.field("gps", &self.gps());
                f.field("armed", &self.armed());
                f.field("mode", &self.mode());
                f.field("status_text", &self.status_text());
                f.field("parameters", &self.parameters());
                f.field("waypoints", &self.waypoints());
                f.field("points", &self.points());
                f.finish()
            }
        }

        impl<'a> ::core::convert::TryFrom<UavStateRef<'a>> for UavState {
            type Error = ::planus::Error;

            #[allow(unreachable_code)]
            fn try_from(value: UavStateRef<'a>) -> ::planus::Result<Self> {
                ::core::result::Result::Ok(Self {
                    header: ::planus::alloc::boxed::Box::new(::core::convert::TryInto::try_into(
                        value.header()?,
                    )?),
                    position_m: value.position_m()?.to_vec()?,
                    attitude: value.attitude()?.to_vec()?,
                    velocity_m_s: value.velocity_m_s()?.to_vec()?,
                    pose_covariance: value.pose_covariance()?.to_vec()?,
                    velocity_covariance: value.velocity_covariance()?.to_vec()?,
                    imu: ::planus::alloc::boxed::Box::new(::core::convert::TryInto::try_into(value.imu()?)?),
                    battery: ::planus::alloc::boxed::Box::new(::core::convert::TryInto::try_into(
                        value.battery()?,
                    )?),
                    gps: ::planus::alloc::boxed::Box::new(::core::convert::TryInto::try_into(value.gps()?)?),
                    armed: ::core::convert::TryInto::try_into(value.armed()?)?,
                    mode: ::core::convert::TryInto::try_into(value.mode()?)?,
                    status_text: ::core::convert::Into::into(value.status_text()?),
                    parameters: value.parameters()?.to_vec_result()?,
                    waypoints: value.waypoints()?.to_vec()?,
                    points: value.points()?.to_vec()?,
                })
            }
        }

        impl<'a> ::planus::TableRead<'a> for UavStateRef<'a> {
            #[inline]
            fn from_buffer(
                buffer: ::planus::SliceWithStartOffset<'a>,
                offset: usize,
            ) -> ::core::result::Result<Self, ::planus::errors::ErrorKind> {
                ::core::result::Result::Ok(Self(::planus::table_reader::Table::from_buffer(buffer, offset)?))
            }
        }

        impl<'a> ::planus::VectorReadInner<'a> for UavStateRef<'a> {
            type Error = ::planus::Error;
            const STRIDE: usize = 4;

            unsafe fn from_buffer(
                buffer: ::planus::SliceWithStartOffset<'a>,
                offset: usize,
            ) -> ::planus::Result<Self> {
                ::planus::TableRead::from_buffer(buffer, offset).map_err(|error_kind| {
                    error_kind.with_error_location("[UavStateRef]", "get", buffer.offset_from_start)
                })
            }
        }

        /// # Safety
        /// The planus compiler generates implementations that initialize
        /// the bytes in `write_values`.
        unsafe impl ::planus::VectorWrite<::planus::Offset<UavState>> for UavState {
            type Value = ::planus::Offset<UavState>;
            const STRIDE: usize = 4;
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> Self::Value {
                ::planus::WriteAs::prepare(self, builder)
            }

            #[inline]
            unsafe fn write_values(
                values: &[::planus::Offset<UavState>],
                bytes: *mut ::core::mem::MaybeUninit<u8>,
                buffer_position: u32,
            ) {
                let bytes = bytes as *mut [::core::mem::MaybeUninit<u8>; 4];
                for (i, v) in ::core::iter::Iterator::enumerate(values.iter()) {
                    ::planus::WriteAsPrimitive::write(
                        v,
                        ::planus::Cursor::new(unsafe { &mut *bytes.add(i) }),
                        buffer_position - (Self::STRIDE * i) as u32,
                    );
                }
            }
        }

        impl<'a> ::planus::ReadAsRoot<'a> for UavStateRef<'a> {
            fn read_as_root(slice: &'a [u8]) -> ::planus::Result<Self> {
                ::planus::TableRead::from_buffer(
                    ::planus::SliceWithStartOffset { buffer: slice, offset_from_start: 0 },
                    0,
                )
                .map_err(|error_kind| error_kind.with_error_location("[UavStateRef]", "read_as_root", 0))
            }
        }
    }
}

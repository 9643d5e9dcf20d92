//! Pictures, points and maps, made small enough for a page.
//!
//! A message to the page has, little-endian: u32 length of a JSON object, the object, padding to a multiple of four, the bytes
//! of which the object speaks.

use std::sync::Arc;

use noctule_web::Payload;
use serde_json::{Value, json};

use crate::cdr_reader::CdrReader;

/// Widest and highest picture that is sent, pixels; larger ones lose rows and columns.
pub const PICTURE_PIXELS_MAX: usize = 480;
/// Most points of a cloud that are sent; of more every n-th.
pub const POINTS_MAX: usize = 16_000;
/// Widest and highest map that is sent, cells.
pub const MAP_CELLS_MAX: usize = 512;
/// Largest compressed picture that is passed on, bytes.
pub const COMPRESSED_BYTES_MAX: usize = 2 << 20;

/// Kind of a type's display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Pixels.
    Image,
    /// JPEG or PNG, as the browser reads it.
    Compressed,
    /// Points in space.
    Cloud,
    /// A map of cells.
    Grid,
    /// Poses, transforms, paths, scans: drawn from the tree of values.
    Scene,
    /// Values.
    Tree,
}

impl Kind {
    /// Kind of a type's content, by its name, with or without `msg`.
    pub fn of(type_name: &str) -> Kind {
        let mut parts = type_name.split('/');
        let (package, name) =
            (parts.next().unwrap_or_default(), type_name.rsplit('/').next().unwrap_or_default());
        match (package, name) {
            ("sensor_msgs", "Image") => Kind::Image,
            ("sensor_msgs", "CompressedImage") => Kind::Compressed,
            ("sensor_msgs", "PointCloud2") => Kind::Cloud,
            ("nav_msgs", "OccupancyGrid") => Kind::Grid,
            ("sensor_msgs", "LaserScan")
            | ("nav_msgs", "Odometry" | "Path")
            | ("tf2_msgs", "TFMessage")
            | (
                "geometry_msgs",
                "PoseStamped"
                | "PoseArray"
                | "PoseWithCovarianceStamped"
                | "PointStamped"
                | "TransformStamped",
            ) => Kind::Scene,
            _ => Kind::Tree,
        }
    }

    /// Word of the page for it.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Image => "image",
            Kind::Compressed => "compressed",
            Kind::Cloud => "cloud",
            Kind::Grid => "grid",
            Kind::Scene => "scene",
            Kind::Tree => "tree",
        }
    }
}

/// Why a sample cannot be shown as a picture, points or a map.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotShown {
    /// Fewer bytes than the message's fields take.
    #[error("the bytes end before the message does")]
    Cut,
    /// A kind that is shown as values.
    #[error("it is no picture")]
    NoPicture,
    /// A picture whose pixels are of an unknown encoding.
    #[error(
        "its encoding is \"{0}\"; shown are rgb8, bgr8, rgba8, bgra8, mono8, mono16, 16UC1, 32FC1, yuv422 and Bayer patterns"
    )]
    Encoding(String),
    /// Fewer bytes than the pixels take.
    #[error("it says {width} x {height} pixels with {row_bytes} bytes a row, and has {bytes} bytes")]
    Pixels {
        /// Width, pixels.
        width: usize,
        /// Height, pixels.
        height: usize,
        /// Length of a row, bytes.
        row_bytes: usize,
        /// Bytes that are there.
        bytes: usize,
    },
    /// A compressed picture of an unknown format.
    #[error("it is no JPEG, PNG or WebP; its format is \"{0}\"")]
    Format(String),
    /// A compressed picture that is too large for the page.
    #[error("it has {0} bytes; {COMPRESSED_BYTES_MAX} are shown at most")]
    Large(usize),
    /// A cloud without places.
    #[error("it has no fields x, y and z of FLOAT32")]
    NoPlaces,
    /// Fewer bytes than the points take.
    #[error("it says {width} x {height} points of {point_bytes} bytes, and has {bytes}")]
    Points {
        /// Points in a row.
        width: usize,
        /// Rows of points.
        height: usize,
        /// Length of a point, bytes.
        point_bytes: usize,
        /// Bytes that are there.
        bytes: usize,
    },
    /// Fewer bytes than the cells of a map take.
    #[error("it says {width} x {height} cells, and has {bytes}")]
    Cells {
        /// Width, cells.
        width: usize,
        /// Height, cells.
        height: usize,
        /// Bytes that are there.
        bytes: usize,
    },
}

/// A message of a content kind for the page: `head` is filled with what the picture is.
///
/// # Errors
/// It cannot be shown.
pub fn message(kind: Kind, bytes: &[u8], head: Value) -> Result<Payload, NotShown> {
    let cut = NotShown::Cut;
    let content = match kind {
        Kind::Image => image(bytes).ok_or(cut)??,
        Kind::Compressed => compressed(bytes).ok_or(cut)??,
        Kind::Cloud => cloud(bytes).ok_or(cut)??,
        Kind::Grid => grid(bytes).ok_or(cut)??,
        Kind::Scene | Kind::Tree => return Err(NotShown::NoPicture),
    };
    Ok(join(head, content))
}

/// Description of a picture, as JSON, and its bytes.
pub(crate) type Content = (Value, Vec<u8>);

/// Adds what a picture is to `head`, and its bytes.
pub(crate) fn join(mut head: Value, (mut of_content, body): Content) -> Payload {
    if let (Some(head), Some(more)) = (head.as_object_mut(), of_content.as_object_mut()) {
        head.append(more);
    }
    let head = head.to_string();
    let padded = (4 + head.len()).next_multiple_of(4);
    let mut message = Vec::with_capacity(padded + body.len());
    message.extend((head.len() as u32).to_le_bytes());
    message.extend(head.as_bytes());
    message.resize(padded, 0);
    message.extend(body);
    Payload::Binary(Arc::from(message))
}

/// `sensor_msgs/Image` as RGB, one byte each, thinned to [`PICTURE_PIXELS_MAX`].
fn image(bytes: &[u8]) -> Option<Result<Content, NotShown>> {
    let mut reader = CdrReader::new(bytes)?;
    let frame = reader.header()?;
    let (height, width) = (reader.u32()? as usize, reader.u32()? as usize);
    let encoding = reader.text()?;
    let is_big_endian = reader.u8()? != 0;
    let step = reader.u32()? as usize;
    let data = reader.bytes()?;
    let Some(pixel) = Pixel::of(encoding, is_big_endian) else {
        return Some(Err(NotShown::Encoding(encoding.escape_debug().to_string())));
    };
    let is_whole = step.checked_mul(height).is_some_and(|size| size <= data.len())
        && width.checked_mul(pixel.bytes()).is_some_and(|row| row <= step);
    if !is_whole || width == 0 || height == 0 {
        return Some(Err(NotShown::Pixels { width, height, row_bytes: step, bytes: data.len() }));
    }
    let every = width.max(height).div_ceil(PICTURE_PIXELS_MAX);
    let (columns, rows) = (width.div_ceil(every), height.div_ceil(every));
    // Depths are stretched from the least to the greatest, which the page names.
    let range = pixel.range(data, (width, height, step), every);
    let mut rgb = Vec::with_capacity(columns * rows * 3);
    for row in (0..height).step_by(every) {
        let line = &data[row * step..(row + 1) * step];
        for column in (0..width).step_by(every) {
            rgb.extend(pixel.rgb(line, column, range));
        }
    }
    let shown = json!({
        "width": width, "height": height, "columns": columns, "rows": rows, "encoding": encoding, "frame": frame,
        "range": pixel.is_depth().then_some([range.0, range.1]),
    });
    Some(Ok((shown, rgb)))
}

/// How a pixel lies in a row.
#[derive(Clone, Copy)]
enum Pixel {
    /// Bytes of a pixel, and where red, green and blue are among them.
    Colours(usize, [usize; 3]),
    /// Two bytes, of either order.
    Deep { is_big_endian: bool },
    /// A float.
    Real { is_big_endian: bool },
    /// Luminance of every other byte: which.
    Yuv(usize),
}

impl Pixel {
    fn of(encoding: &str, is_big_endian: bool) -> Option<Pixel> {
        Some(match encoding {
            "rgb8" | "8UC3" => Pixel::Colours(3, [0, 1, 2]),
            "bgr8" => Pixel::Colours(3, [2, 1, 0]),
            "rgba8" => Pixel::Colours(4, [0, 1, 2]),
            "bgra8" | "8UC4" => Pixel::Colours(4, [2, 1, 0]),
            "mono8" | "8UC1" => Pixel::Colours(1, [0, 0, 0]),
            // As grey: which pixels are of which colour shows at full size only.
            _ if encoding.starts_with("bayer_") && encoding.ends_with('8') => Pixel::Colours(1, [0, 0, 0]),
            "mono16" | "16UC1" => Pixel::Deep { is_big_endian },
            "32FC1" => Pixel::Real { is_big_endian },
            "yuv422" | "uyvy" => Pixel::Yuv(1),
            "yuv422_yuy2" | "yuyv" => Pixel::Yuv(0),
            _ => return None,
        })
    }

    fn bytes(self) -> usize {
        match self {
            Pixel::Colours(bytes, _) => bytes,
            Pixel::Deep { .. } | Pixel::Yuv(_) => 2,
            Pixel::Real { .. } => 4,
        }
    }

    fn is_depth(self) -> bool {
        matches!(self, Pixel::Deep { .. } | Pixel::Real { .. })
    }

    /// A depth; the row is long enough.
    fn depth(self, line: &[u8], column: usize) -> f32 {
        let ordered = |bytes: &[u8], is_big_endian: bool| {
            let mut whole = [0; 4];
            whole[..bytes.len()].copy_from_slice(bytes);
            if is_big_endian {
                whole[..bytes.len()].reverse();
            }
            whole
        };
        match self {
            Pixel::Deep { is_big_endian } => {
                u32::from_le_bytes(ordered(&line[column * 2..column * 2 + 2], is_big_endian)) as f32
            }
            Pixel::Real { is_big_endian } => {
                f32::from_le_bytes(ordered(&line[column * 4..column * 4 + 4], is_big_endian))
            }
            _ => 0.0,
        }
    }

    fn range(self, data: &[u8], (width, height, step): (usize, usize, usize), every: usize) -> (f32, f32) {
        let (mut low, mut high) = (f32::INFINITY, f32::NEG_INFINITY);
        if !self.is_depth() {
            return (0.0, 0.0);
        }
        for row in (0..height).step_by(every) {
            let line = &data[row * step..(row + 1) * step];
            for depth in (0..width).step_by(every).map(|column| self.depth(line, column)) {
                if depth.is_finite() {
                    (low, high) = (low.min(depth), high.max(depth));
                }
            }
        }
        if low <= high { (low, high) } else { (0.0, 0.0) }
    }

    fn rgb(self, line: &[u8], column: usize, (low, high): (f32, f32)) -> [u8; 3] {
        match self {
            Pixel::Colours(bytes, at) => at.map(|at| line[column * bytes + at]),
            Pixel::Yuv(at) => [line[column * 2 + at]; 3],
            Pixel::Deep { .. } | Pixel::Real { .. } => {
                let depth = self.depth(line, column);
                let share = if high > low { (depth - low) / (high - low) } else { 0.0 };
                // A depth that is not known is black.
                let grey = if share.is_finite() { (30.0 + share * 225.0) as u8 } else { 0 };
                [grey; 3]
            }
        }
    }
}

fn compressed(bytes: &[u8]) -> Option<Result<Content, NotShown>> {
    let mut reader = CdrReader::new(bytes)?;
    let (frame, format, data) = (reader.header()?, reader.text()?, reader.bytes()?);
    let kind = match data {
        [0xFF, 0xD8, ..] => "image/jpeg",
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [b'R', b'I', b'F', b'F', ..] => "image/webp",
        _ => return Some(Err(NotShown::Format(format.escape_debug().to_string()))),
    };
    if data.len() > COMPRESSED_BYTES_MAX {
        return Some(Err(NotShown::Large(data.len())));
    }
    Some(Ok((json!({ "mime": kind, "format": format, "frame": frame }), data.to_vec())))
}

/// `sensor_msgs/PointCloud2`: x, y, z as f32 and a colour as four bytes (red, green, blue, 255 or, without a colour, 0).
fn cloud(bytes: &[u8]) -> Option<Result<Content, NotShown>> {
    let mut reader = CdrReader::new(bytes)?;
    let frame = reader.header()?;
    let (height, width) = (reader.u32()? as usize, reader.u32()? as usize);
    let mut places = [None; 4];
    for _ in 0..reader.u32()? {
        let name = reader.text()?;
        let (offset, datatype) = (reader.u32()? as usize, reader.u8()?);
        reader.u32()?;
        // 7 is FLOAT32; a colour is packed into a FLOAT32 or a UINT32.
        let index = match (name, datatype) {
            ("x", 7) => 0,
            ("y", 7) => 1,
            ("z", 7) => 2,
            ("rgb" | "rgba", 6 | 7) => 3,
            _ => continue,
        };
        places[index] = Some(offset);
    }
    let is_big_endian = reader.u8()? != 0;
    let (point_step, row_step) = (reader.u32()? as usize, reader.u32()? as usize);
    let data = reader.bytes()?;
    let [Some(x), Some(y), Some(z), colour] = places else {
        return Some(Err(NotShown::NoPlaces));
    };
    let fits = [x, y, z, colour.unwrap_or(x)].iter().all(|at| at.saturating_add(4) <= point_step)
        && row_step.checked_mul(height).is_some_and(|size| size <= data.len())
        && width.checked_mul(point_step).is_some_and(|row| row <= row_step);
    let count = width.saturating_mul(height);
    if !fits && count > 0 {
        return Some(Err(NotShown::Points { width, height, point_bytes: point_step, bytes: data.len() }));
    }
    let word = |at: usize| {
        let mut bytes = [data[at], data[at + 1], data[at + 2], data[at + 3]];
        if is_big_endian {
            bytes.reverse();
        }
        bytes
    };
    let every = count.div_ceil(POINTS_MAX).max(1);
    let mut points = Vec::with_capacity(count.div_ceil(every) * 16);
    let mut shown = 0_usize;
    for index in (0..count).step_by(every) {
        let begin = index / width * row_step + index % width * point_step;
        let place = [x, y, z].map(|at| word(begin + at));
        if place.iter().all(|part| f32::from_le_bytes(*part).is_finite()) {
            place.iter().for_each(|part| points.extend(part));
            let packed = colour.map(|at| word(begin + at));
            points.extend(packed.map_or([0; 4], |[blue, green, red, _]| [red, green, blue, 255]));
            shown += 1;
        }
    }
    Some(Ok((json!({ "points": shown, "of": count, "frame": frame }), points)))
}

/// `nav_msgs/OccupancyGrid`: one byte a cell, as it came.
fn grid(bytes: &[u8]) -> Option<Result<Content, NotShown>> {
    let mut reader = CdrReader::new(bytes)?;
    let frame = reader.header()?;
    reader.u32()?;
    reader.u32()?;
    let resolution = reader.f32()?;
    let (width, height) = (reader.u32()? as usize, reader.u32()? as usize);
    let mut origin = [0.0; 7];
    for part in &mut origin {
        *part = reader.f64()?;
    }
    let data = reader.bytes()?;
    if width.checked_mul(height).is_none_or(|cells| cells > data.len()) {
        return Some(Err(NotShown::Cells { width, height, bytes: data.len() }));
    }
    let every = width.max(height).div_ceil(MAP_CELLS_MAX).max(1);
    let (columns, rows) = (width.div_ceil(every), height.div_ceil(every));
    let mut cells = Vec::with_capacity(columns * rows);
    for row in (0..height).step_by(every) {
        cells.extend((0..width).step_by(every).map(|column| data[row * width + column]));
    }
    let shown = json!({
        "width": width, "height": height, "columns": columns, "rows": rows, "frame": frame,
        // Of a cell as it is sent, m.
        "resolution": f64::from(resolution) * every as f64, "origin": origin,
    });
    Some(Ok((shown, cells)))
}

#[cfg(test)]
mod tests;

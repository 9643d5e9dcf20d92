//! Frame, style and scripts of every page of the lab, for pages that other crates write.

/// Head, title and scripts: the template `page.html`, which a page's own template extends.
pub const FRAME: &str = include_str!("web/page.html");
/// The look of every page.
pub const STYLE: &str = include_str!("web/report.css");
/// Draws panels with uPlot.
pub const PLOT_SCRIPT: &str = include_str!("web/plot.js");
/// The look of uPlot.
pub const UPLOT_STYLE: &str = include_str!("../../../web/vendor/uPlot.min.css");
/// uPlot itself.
pub const UPLOT_SCRIPT: &str = include_str!("../../../web/vendor/uPlot.iife.min.js");

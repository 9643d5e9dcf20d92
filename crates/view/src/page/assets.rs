//! The files of the page.

use noctule_web::Asset;

const SCRIPT: &str = "text/javascript";
const STYLE: &str = "text/css";

/// Compiled in: nothing is fetched from elsewhere.
pub const ASSETS: [Asset; 18] = [
    Asset { path: "/", content_type: "text/html", body: include_str!("../../../../web/view/page.html") },
    Asset { path: "/shell.css", content_type: STYLE, body: include_str!("../../../../web/shell.css") },
    Asset { path: "/view.css", content_type: STYLE, body: include_str!("../../../../web/view/view.css") },
    Asset {
        path: "/uplot.css",
        content_type: STYLE,
        body: include_str!("../../../../web/vendor/uPlot.min.css"),
    },
    Asset {
        path: "/uplot.js",
        content_type: SCRIPT,
        body: include_str!("../../../../web/vendor/uPlot.iife.min.js"),
    },
    Asset { path: "/socket.js", content_type: SCRIPT, body: include_str!("../../../../web/socket.js") },
    Asset { path: "/chart.js", content_type: SCRIPT, body: include_str!("../../../../web/chart.js") },
    Asset { path: "/page.js", content_type: SCRIPT, body: include_str!("../../../../web/view/page.js") },
    Asset {
        path: "/timeline.js",
        content_type: SCRIPT,
        body: include_str!("../../../../web/view/timeline.js"),
    },
    Asset { path: "/topics.js", content_type: SCRIPT, body: include_str!("../../../../web/view/topics.js") },
    Asset { path: "/graph.js", content_type: SCRIPT, body: include_str!("../../../../web/view/graph.js") },
    Asset { path: "/nodes.js", content_type: SCRIPT, body: include_str!("../../../../web/view/nodes.js") },
    Asset { path: "/sample.js", content_type: SCRIPT, body: include_str!("../../../../web/view/sample.js") },
    Asset { path: "/layout.js", content_type: SCRIPT, body: include_str!("../../../../web/view/layout.js") },
    Asset { path: "/plots.js", content_type: SCRIPT, body: include_str!("../../../../web/view/plots.js") },
    Asset {
        path: "/pictures.js",
        content_type: SCRIPT,
        body: include_str!("../../../../web/view/pictures.js"),
    },
    Asset { path: "/scene.js", content_type: SCRIPT, body: include_str!("../../../../web/view/scene.js") },
    Asset { path: "/export.js", content_type: SCRIPT, body: include_str!("../../../../web/view/export.js") },
];

// The styles of the page. They are not part of the views, which are loaded later in a browser.

// Before the styles of all views, which have those of narrow windows at their end.
import "./reading.css";
import "./style.css";
import "./trace.css";
import "uplot/dist/uPlot.min.css";

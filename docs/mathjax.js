MathJax.Hub.Config({messageStyle: "none"});  // no "Typesetting math" in the corner of a page

"""Pages of details: what `enter` shows. Loaded when a page is opened (`opening`): no first picture waits for them."""

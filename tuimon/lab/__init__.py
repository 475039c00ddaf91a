"""The roofline lab: hypothetical intensities, bandwidths and peaks, predictions of their ceiling, and a guided walk."""

"""Pure text: what is drawn, as lines of (text, role). No model, no screen library, no colour: roles get looks elsewhere."""

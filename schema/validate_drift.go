package schema

// drift checks what is done about objects that others have changed.
func (v *validator) drift(d DriftSpec) {
	if d.Mode != "" {
		oneOf(v, "drift.mode", d.Mode, DriftCorrect, DriftDetect)
	}
}

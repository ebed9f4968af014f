package plan

// immutable refuses changes that have no safe way, and says which way there is.
func immutable(s *situation) verdict {
	if s.o.Set == nil {
		return pass()
	}
	if len(s.o.Set.Immutable) > 0 {
		return explain(s.o.Set.Immutable)
	}
	return pass()
}

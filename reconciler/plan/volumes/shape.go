package volumes

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// bound are the volumes of members that exist and stay: of the recorded members, or before there are any, of all.
func bound(s *situation.Situation) []state.Volume {
	all := s.Observed.Volumes
	if s.Formed() {
		all = s.MemberVolumes()
	}
	stays := func(v state.Volume) bool { return v.Bound && !v.Terminating }
	return slices.DeleteFunc(slices.Clone(all), func(v state.Volume) bool { return !stays(v) })
}

// Changes lists what Git asks for that the volumes which exist cannot become. What the StatefulSet asks for does not
// matter: it may name a class that no volume has ever had.
func Changes(s *situation.Situation) []state.Change {
	largest, other, class := int64(0), false, s.WantedClass()
	for _, v := range bound(s) {
		largest = max(largest, v.Size)
		other = other || class != "" && v.Class != class
	}
	var changes []state.Change
	if wanted := s.WantedSize(); wanted > 0 && largest > wanted {
		text := fmt.Sprintf("%s (%s to %s)", state.FieldSize, state.SizeText(largest), state.SizeText(wanted))
		changes = append(changes, state.Change{Field: state.FieldSize, Text: text})
	}
	if other && s.Desired.Spec.Storage.ClassChange != schema.ClassChangeReplace {
		changes = append(changes, state.Change{Field: state.FieldClass, Text: state.FieldClass})
	}
	return changes
}

// Misshapen tells what volumes new members would get of the StatefulSet instead of those that Git asks for; "" where
// they get these, and where Git asks for what the others cannot become.
func Misshapen(s *situation.Situation) string {
	switch set := s.Observed.Set; {
	case set == nil || len(Changes(s)) > 0:
		return ""
	case misclassed(s):
		return "volumes of " + situation.ClassName(set.ClaimClass) + " instead of " + situation.ClassName(s.WantedClass())
	case set.ClaimSize > 0 && set.ClaimSize != s.WantedSize():
		return fmt.Sprintf("%s instead of %s", state.SizeText(set.ClaimSize), state.SizeText(s.WantedSize()))
	}
	return ""
}

// misclassed reports whether the StatefulSet asks for another class than Git does. Where Git names none, a class that
// no volume has is not what Kubernetes would choose, either.
func misclassed(s *situation.Situation) bool {
	class, asked := s.WantedClass(), s.Observed.Set.ClaimClass
	return class != "" && asked != class || class == "" && asked != "" && !has(s, asked)
}

// has reports whether a volume is of a class.
func has(s *situation.Situation, class string) bool {
	return slices.ContainsFunc(bound(s), func(v state.Volume) bool { return v.Class == class })
}

// Unmade reports whether a claim has no volume behind it and asks for one of another class than Git does, or a larger
// one, so that it is worth nothing. Where Git names no class, it is one which was made for an earlier StatefulSet, of
// a class that no volume has. A volume that is too small grows when it is there.
func Unmade(s *situation.Situation, v *state.Volume) bool {
	if !v.Anew() || len(Changes(s)) > 0 {
		return false
	}
	class, set := s.WantedClass(), s.Observed.Set
	switch {
	case s.WantedSize() > 0 && v.Size > s.WantedSize():
		return true
	case class == "":
		return v.Class != "" && set != nil && set.ClaimClass == "" && v.Created.Before(set.Created) && !has(s, v.Class)
	}
	return v.Class != class
}

// Moves reports whether members are to be replaced for volumes of another class.
func Moves(s *situation.Situation) bool {
	differs := func(v state.Volume) bool { return v.Class != s.WantedClass() }
	return s.Formed() && s.ClassChanges() && s.Replaceable() && slices.ContainsFunc(bound(s), differs)
}

// HasMoved reports whether a member has a volume of the class that Git names.
func HasMoved(s *situation.Situation) bool { return has(s, s.WantedClass()) }

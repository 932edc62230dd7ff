package schema

import "slices"

// exclusives are what stands in a map one instead of another, which CUE's shapes do not say: they are told to editors beside the
// keys. See testBuilder.test, step and answers.
var exclusives = map[string][]any{
	"#Test": {
		only([]string{"call"}, "steps", "each"),
		only([]string{"steps"}, "call", "at", "cancel", "server", "expect", "each"),
		&ordered{[]member{ // a table without a call of its own has one in each row
			{"required", []string{"each"}},
			{"properties", &ordered{[]member{
				{"steps", false}, {"call", false},
				{"each", &ordered{[]member{{"items", &ordered{[]member{{"required", []string{"call"}}}}}}}},
			}}},
		}},
		only([]string{"call", "each"}, "steps"),
	},
	"#Step": {
		only([]string{"call"}, "advance", "restart", "notify"),
		only([]string{"advance"}, append(stepKeys, "restart", "notify")...),
		only([]string{"restart"}, append(stepKeys, "advance", "notify")...),
		only([]string{"notify"}, append(stepKeys, "advance", "restart")...),
	},
	"#Answer": outcomeAlternatives(),
}

// stepKeys are those of a step that is a call.
var stepKeys = slices.Clip([]string{"call", "at", "cancel", "server", "expect"})

// only is the schema of a map that has some keys and does not have others.
func only(keys []string, without ...string) *ordered {
	forbidden := &ordered{}
	for _, name := range without {
		forbidden.set(name, false)
	}
	return &ordered{[]member{{"required", keys}, {"properties", forbidden}}}
}

// outcomeAlternatives say that an attempt has one outcome.
func outcomeAlternatives() []any {
	var list []any
	for _, name := range outcomes {
		list = append(list, &ordered{[]member{{"required", []string{name}}}})
	}
	return list
}

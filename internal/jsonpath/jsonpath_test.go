package jsonpath

import "testing"

func TestSteps(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"a": ".a", "order_id": ".order_id", "A9": ".A9", "9a": `["9a"]`, "": `[""]`, "a b": `["a b"]`, "a.b": `["a.b"]`, "é": `["é"]`,
		"\"]\n": `["\"]\n"]`, "\xff": `["\xff"]`,
	} {
		if got := Key(key); got != want {
			t.Errorf("Key(%q) is %s, want %s", key, got, want)
		}
	}
	if got := Root + Key("a") + Index(12); got != "$.a[12]" {
		t.Errorf("got %s", got)
	}
}

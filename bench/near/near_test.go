package near

import "testing"

func TestDistanceCountsChanges(t *testing.T) {
	for words, want := range map[[2]string]int{
		{"", ""}: 0, {"", "abc"}: 3, {"abc", ""}: 3, {"kitten", "sitting"}: 3, {"brpop", "brpob"}: 1, {"confrim", "confirm"}: 2, {"same", "same"}: 0,
	} {
		if got := Distance(words[0], words[1]); got != want {
			t.Errorf("%q: got %d, want %d", words, got, want)
		}
	}
}

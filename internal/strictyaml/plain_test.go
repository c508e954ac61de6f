package strictyaml

import (
	"math/rand/v2"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestPlain: a text that isPlain accepts is written as the YAML package writes it, as a key, a value and in a list.
func TestPlain(t *testing.T) {
	t.Parallel()
	texts := []string{"version", "sha256:0af", "a", "y", "N", "Yes", "on", "OFF", "true", "null", "a:", "a: b", "é", "e1",
		"inf", "nan", "x-1.2/3_4:5", "http://example.com/"}
	const letters = "aeonyftrul-_./:019 #"
	for range 5000 {
		b := make([]byte, 1+rand.IntN(6))
		for i := range b {
			b[i] = letters[rand.IntN(len(letters))]
		}
		texts = append(texts, string(b))
	}
	plain := 0
	for _, s := range texts {
		if !isPlain(s) {
			continue
		}
		plain++
		got, err := Write(Mapping{{s, s}, {"list", []string{s, s}}}, "")
		if err != nil {
			t.Fatal(err)
		}
		slow := &yaml.Node{}
		if err := slow.Encode(s); err != nil {
			t.Fatal(err)
		}
		if slow.Value != s || slow.Style != 0 || slow.Tag != "!!str" {
			t.Errorf("%q is written otherwise: %+v", s, slow)
		}
		var read struct {
			Map map[string]any `yaml:",inline"`
		}
		if err := yaml.Unmarshal(got, &read); err != nil || read.Map[s] != s {
			t.Errorf("%q is read back as %v, %v: %s", s, read.Map, err, got)
		}
	}
	if plain < 100 {
		t.Errorf("only %d texts are plain", plain)
	}
}

// TestWriteAllocates holds down what a plain text costs to write.
func TestWriteAllocates(t *testing.T) {
	entry := Mapping{{"version", "v1.0.0"}, {"digest", "sha256:0123456789abcdef"}}
	var many Mapping
	for range 100 {
		many = append(many, Entry{"plugin", entry})
	}
	allocations := testing.AllocsPerRun(5, func() {
		if _, err := Write(many, ""); err != nil {
			t.Fatal(err)
		}
	})
	if allocations > 100*60 {
		t.Errorf("%.0f allocations for an entry of two texts", allocations/100)
	}
}

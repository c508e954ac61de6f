package llm

import (
	"testing"

	"github.com/hako-run/hako/pdk/abi"
)

func TestInWords(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		block abi.Content
		want  string
	}{
		{abi.Content{Type: abi.Text, Text: "a text"}, "a text"},
		{abi.Content{Type: abi.ResourceLink, Name: "map", URI: "geo:1,2"}, "(link to map: geo:1,2)"},
		{abi.Content{Type: abi.ResourceLink, Name: "map", URI: "geo:1,2", Description: "a harbour"},
			"(link to map: geo:1,2 a harbour)"},
		{abi.Content{Type: abi.Embedded}, "(an empty resource)"},
		{abi.Content{Type: abi.Embedded, Resource: &abi.ResourceContents{URI: "a:b", Text: "x"}}, "(resource a:b)\nx"},
		{abi.Content{Type: abi.Embedded,
			Resource: &abi.ResourceContents{URI: "a:b", MIMEType: "image/png", Data: []byte{1, 2}}},
			"(resource a:b, image/png, 2 bytes, which are not shown)"},
		{abi.Content{Type: abi.Audio, MIMEType: "audio/wav", Data: []byte{1}},
			"(audio, audio/wav, 1 bytes, which are not shown)"},
	} {
		if got := InWords(&test.block); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

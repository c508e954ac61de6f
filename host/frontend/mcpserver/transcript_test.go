package mcpserver

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var rewrite = flag.Bool("update", false, "write what the server says into the transcripts")

// TestTranscripts holds conversations on approvals, message by message: in testdata/approval "->" is what the client
// says and "<-" what the server does, "#" a comment. The IDs of questions are numbered.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/approval/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			script, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := newConversation(t).play(string(script))
			switch {
			case *rewrite:
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			case got != string(script):
				t.Errorf("the conversation is now:\n%s", got)
			}
		})
	}
}

// conversation is one with a client on stdio.
type conversation struct {
	t          *testing.T
	toServer   io.Writer
	fromServer *bufio.Scanner
	// ids are those of the questions, in the order in which they came up.
	ids []string
}

func newConversation(t *testing.T) *conversation {
	t.Helper()
	g := newGoverned(t, askingPolicy, nil, nil)
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- g.ServeStdio(t.Context(), fromClient, toClient) }()
	t.Cleanup(func() {
		toServer.Close()
		go io.Copy(io.Discard, fromServer)
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return &conversation{t: t, toServer: toServer, fromServer: bufio.NewScanner(fromServer)}
}

// play says what the client says in script, and returns it with what the server says.
func (c *conversation) play(script string) string {
	var played bytes.Buffer
	for line := range strings.Lines(script) {
		switch line = strings.TrimSuffix(line, "\n"); {
		case strings.HasPrefix(line, "->"):
			if _, err := fmt.Fprintln(c.toServer, c.named(strings.TrimPrefix(line, "->"))); err != nil {
				c.t.Fatal(err)
			}
		case strings.HasPrefix(line, "<-"):
			if !c.fromServer.Scan() {
				c.t.Fatalf("nothing more, want %s", line)
			}
			line = "<- " + c.numbered(c.fromServer.Text())
		}
		fmt.Fprintln(&played, line)
	}
	return played.String()
}

var questionID = regexp.MustCompile(`apr_[0-9A-Z]{26}`)

func (c *conversation) numbered(message string) string {
	return questionID.ReplaceAllStringFunc(message, func(id string) string {
		for i := range c.ids {
			if c.ids[i] == id {
				return fmt.Sprintf("apr_%d", i+1)
			}
		}
		c.ids = append(c.ids, id)
		return fmt.Sprintf("apr_%d", len(c.ids))
	})
}

func (c *conversation) named(message string) string {
	for i, id := range c.ids {
		message = strings.ReplaceAll(message, fmt.Sprintf(`"apr_%d"`, i+1), fmt.Sprintf("%q", id))
	}
	return message
}

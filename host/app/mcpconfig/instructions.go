package mcpconfig

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/frontend/terminal"
)

// Options describe how a client reaches hako, and the form of the instructions.
type Options struct {
	// Name is the name of the server in the client.
	Name string
	// HTTP uses the HTTP server of the configuration, URL the HTTP server at this address. OAuth also lets the client
	// log its user in there. Without them the client starts hako itself.
	HTTP  bool
	URL   string
	OAuth bool
	// Command asks for the client's own command that adds the server, Link for a link. Without them the result is
	// text to paste into the client's configuration.
	Command, Link bool
}

// Instructions tell a person how to add hako to a client.
type Instructions struct {
	// Before explains what to do with Document, After the step after that; After may be empty.
	Before, After string
	// Document is a Text, or a value that is encoded as JSON.
	Document any
}

// Instructions returns what to do for a configuration, which was read in dir. It fails if the client lacks what the
// options ask for.
func (client Client) Instructions(c *config.Config, dir string, o Options) (*Instructions, error) {
	s, err := stdioServer(c, dir)
	if o.HTTP || o.OAuth || o.URL != "" {
		s, err = client.HTTP(c, o.URL, o.OAuth)
	}
	if err != nil {
		return nil, err
	}
	i := new(Instructions)
	switch {
	case o.OAuth:
		i.After = fmt.Sprintf("Then log in: "+client.Login, o.Name)
	case strings.Contains(s.Token, "HAKO_TOKEN"):
		i.After = "The token is not in it: the client reads it from its environment. Start the client with HAKO_TOKEN set " +
			"to one of your tokens, which hako token new NAME makes."
	case s.Token == zedToken:
		i.After = "Write one of your tokens in place of " + zedToken + ": hako token new NAME makes one."
	}
	switch {
	case o.Command && client.Command == nil:
		return nil, errors.New("this client has no command that adds a server: leave out --command")
	case o.Link && client.Link == nil:
		return nil, errors.New("this client has no links that install a server: leave out --link")
	case o.Command:
		words := client.Command(o.Name, s)
		for i, word := range words {
			words[i] = terminal.ShellWord(word)
		}
		i.Before, i.Document = "Run this", Text(strings.Join(words, " ")+"\n")
	case o.Link:
		i.Before, i.Document = "Open this on the machine of the client", Text(client.Link(o.Name, s)+"\n")
	default:
		i.Before = "Paste this into " + client.File
		i.Document, err = client.Document(o.Name, s)
	}
	return i, err
}

//go:build !wasip1

// Package pdkhosttest calls a plugin's handlers from go test through hako's own pipeline, without Wasm. What the host
// does around a call is done here by the same code: New reads the manifest; arguments and results are checked against
// the schemas; defaults of the configuration are filled in; URIs are matched to resources and templates; HTTP requests
// obey the permissions, and are answered from recordings or by servers of the test.
//
// Files are not confined: handlers see those of the machine. Package pdktest needs no manifest and compiles faster.
package pdkhosttest

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"testing"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk"
	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/pdktest"
)

// Options configures a Host. The zero value grants what the manifest asks for and sends requests where it says.
type Options struct {
	// Config holds the operator's settings. The manifest's defaults are filled in.
	Config map[string]any
	// HTTP are other addresses for HTTP permissions, by name, such as that of an httptest.Server.
	HTTP map[string]string
	// Recordings is a file with the answers to all requests; see docs/recordings.md. Empty means that requests are
	// sent.
	Recordings string
	// Locale is the caller's language. Empty means English.
	Locale string
	// Progress receives the reports of pdk.Progress, Updated the URIs of pdk.ResourceUpdated. Both may be nil.
	Progress func(abi.Progress)
	Updated  func(uri string)
}

// Host calls the handlers that the test's program registered. It is safe for concurrent use.
type Host struct {
	t        testing.TB
	options  Options
	http     *httpbroker.Broker
	pipeline *pipeline.Pipeline
}

// New reads a manifest. It fails the test if the manifest, the options or the recordings are not valid.
func New(t testing.TB, manifestFile string, options Options) *Host {
	t.Helper()
	h := &Host{t: t, options: options}
	text, err := os.ReadFile(manifestFile)
	h.check(err)
	m, err := manifest.Parse(text)
	h.check(err)
	grants := h.grants(m)
	config, err := m.Configure(grants.Config(m, options.Config))
	h.check(err)
	sending := &httpbroker.Options{Credentials: credentials{}}
	if options.Recordings != "" {
		data, err := os.ReadFile(options.Recordings)
		h.check(err)
		sending.Replay, err = httpbroker.ParseRecordings(data)
		h.check(err)
	}
	h.http, err = httpbroker.New(grants.HTTP, sending)
	h.check(err)
	t.Cleanup(func() { h.check(h.http.Close()) })
	offered := new(catalog.Catalog)
	h.check(offered.Put(catalog.Source{Name: m.Name, Config: config, Backend: h}, m))
	h.pipeline = pipeline.New(offered, &pipeline.Options{Settings: pipeline.Settings{Locale: options.Locale}})
	return h
}

// grants returns everything that the manifest asks for, with the options' addresses and a folder for each mount.
func (h *Host) grants(m *manifest.Manifest) grant.Grants {
	h.t.Helper()
	proposal := grant.Propose(nil, m, "", "test")
	for _, p := range m.Permissions.Files {
		proposal.Consent.Mounts[p.Mount] = grant.Mount{Name: p.Mount, Path: h.t.TempDir(), Write: p.Write}
	}
	for name, url := range h.options.HTTP {
		proposal.Consent.HTTP[name] = grant.HTTPMapping{URL: url}
	}
	grants, err := proposal.Grants(h.options.Config)
	h.check(err)
	return grants
}

func (h *Host) check(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatalf("pdkhosttest: %v", err)
	}
}

// CallTool calls a tool with arguments, which are encoded as JSON. Failures of the tool and invalid arguments are
// responses with IsError; the error is the host's, as clients get it.
func (h *Host) CallTool(name string, arguments any) (*abi.Response, error) {
	h.t.Helper()
	data, err := json.Marshal(arguments)
	h.check(err)
	return h.call(abi.Request{Method: abi.CallTool, Name: name, Arguments: data})
}

// ReadResource reads a resource, also of a template.
func (h *Host) ReadResource(uri string) (*abi.Response, error) {
	return h.call(abi.Request{Method: abi.ReadResource, URI: uri})
}

// GetPrompt gets a prompt.
func (h *Host) GetPrompt(name string, arguments map[string]string) (*abi.Response, error) {
	h.t.Helper()
	data, err := json.Marshal(arguments)
	h.check(err)
	return h.call(abi.Request{Method: abi.GetPrompt, Name: name, Arguments: data})
}

// Complete completes the argument of a prompt or a variable of a resource template. The type of ref is "ref/prompt" or
// "ref/resource".
func (h *Host) Complete(ref abi.Ref, argument abi.Argument) (*abi.Response, error) {
	return h.call(abi.Request{Method: abi.Complete, Ref: &ref, Argument: &argument})
}

func (h *Host) call(request abi.Request) (*abi.Response, error) {
	result, err := h.pipeline.Call(h.t.Context(), &pipeline.Call{
		Caller: pipeline.Caller{Locale: h.options.Locale}, Request: request, Progress: h.options.Progress})
	if err != nil {
		return nil, err
	}
	return result.Response, nil
}

var _ catalog.Backend = (*Host)(nil)

// Call serves a request of the pipeline with the handlers of this program.
func (h *Host) Call(ctx context.Context, invocation *catalog.Invocation) (*abi.Response, error) {
	call := &broker.Call{Plugin: "test", Tool: invocation.Request.Name}
	defer call.Close()
	send := func(ctx context.Context, head *abi.HTTPRequest, body []byte) (*abi.HTTPResponse, io.ReadCloser, error) {
		response, err := h.http.Do(ctx, call, head, body)
		if err != nil {
			return nil, nil, err
		}
		return &abi.HTTPResponse{Status: response.Status, Headers: response.Header, URL: response.URL,
			Credential: response.Credential}, response.Body, nil
	}
	ctx, end := pdktest.Start(ctx, h.t, pdktest.Options{
		HTTP: send, Progress: invocation.Progress, Updated: h.options.Updated})
	response := pdk.Handle(ctx, invocation.Request)
	if err := end(); err != nil {
		return nil, err
	}
	return response, response.FillStructured()
}

// credentials has a made-up secret for every name.
type credentials struct{}

// Credential returns "Bearer secret-of-NAME".
func (credentials) Credential(_ context.Context, _, name string) (*broker.Credential, error) {
	secret := "secret-of-" + name
	return &broker.Credential{Header: "Authorization", Value: "Bearer " + secret, Secrets: []string{secret}}, nil
}

// Renew returns none: what a server of the test refuses stays refused.
func (credentials) Renew(context.Context, string, string, *broker.Credential, int, []byte) (*broker.Credential, error) {
	return nil, nil
}

package pipeline

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/govern/toolset"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/typescript"
	"github.com/hako-run/hako/pdk/abi"
)

// A view that passes the limits of toolset.Search lists two tools of the pipeline's own in place of the others: with
// find_tools a model looks for tools, with call_tool it calls them. A call of call_tool becomes a call of the tool
// before anything else looks at it, so policy, people, quotas and records see the tool alone.
const (
	findTools = "find_tools"
	callTool  = "call_tool"
)

//go:embed finder.yaml
var finderYAML []byte

// finderTools returns the two tools.
var finderTools = sync.OnceValue(func() []*catalog.Tool {
	m, err := manifest.Parse(finderYAML)
	if err != nil {
		panic(err) // it is part of the program
	}
	var tools []*catalog.Tool
	for i := range m.Tools {
		name := m.Tools[i].Name
		// People may be asked about the tool that call_tool calls.
		source := &catalog.Source{Name: "hako.finder", Own: true, Finds: true, Asks: name == callTool}
		tools = append(tools, &catalog.Tool{Source: source, Name: name, Spec: &m.Tools[i]})
	}
	return tools
})

// listing returns the view as frontends list it. Tools that are not listed can be looked up all the same.
func (p *Pipeline) listing(o offer) *catalog.View {
	config := p.settings.Load().Toolsets
	if config == nil || config.Search == (toolset.Search{}) {
		return o.View
	}
	return p.offers.listing(o, p.catalog.View(), config)
}

// listing caches Listing for the views of one snapshot.
func (o *offers) listing(of offer, snapshot *catalog.View, config *toolset.Config) *catalog.View {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reset(snapshot, config)
	listing := o.listings[of.View]
	if listing == nil {
		view := of.set
		if view == nil {
			view = &toolset.View{View: of.View}
		}
		listing = Listing(view, config.Search)
		o.listings[of.View] = listing
	}
	return listing
}

// Listing returns the view as frontends list it: as it is if it keeps to the limits of the search. Otherwise the list
// has the tools that the set pins, the host's own, those that call other tools, and the finder's where their names are
// free.
func Listing(view *toolset.View, search toolset.Search) *catalog.View {
	if !search.Passed(view.Tools) {
		return view.View
	}
	var listed []*catalog.Tool
	for _, tool := range view.Tools {
		if tool.Source.Own || tool.Source.Calls != nil || view.Pinned(tool.Name) {
			listed = append(listed, tool)
		}
	}
	for _, tool := range finderTools() {
		if _, taken := view.Tool(tool.Name); !taken {
			listed = append(listed, tool)
		}
	}
	return view.Listing(listed)
}

// finderTool returns the finder's tool that the call names, nil if it names another. A call of it is served for the
// caller of this call.
func (p *Pipeline) finderTool(call *Call) *catalog.Tool {
	if call.parent != nil || call.unshaped || call.Request.Name != findTools && call.Request.Name != callTool {
		return nil
	}
	listed, ok := p.View(call.Caller).Tool(call.Request.Name)
	if !ok || !listed.Source.Finds {
		return nil
	}
	source, tool := *listed.Source, *listed
	source.Backend, tool.Source = &finder{p, call}, &source
	return &tool
}

// unwrap returns the call of the tool that a call of call_tool names. Other calls, and those whose arguments are wrong,
// stay as they are.
func (p *Pipeline) unwrap(call *Call) *Call {
	if call.Request.Method != abi.CallTool || call.Request.Name != callTool {
		return call
	}
	tool := p.finderTool(call)
	if tool == nil {
		return call
	}
	arguments, err := tool.Spec.Input().Arguments(call.Request.Arguments)
	if err != nil {
		return call
	}
	var wanted struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal(arguments, &wanted) != nil || wanted.Name == callTool {
		return call
	}
	unwrapped := *call
	unwrapped.Request.Name, unwrapped.Request.Arguments = wanted.Name, wanted.Arguments
	return &unwrapped
}

// finder is the backend of the finder's tools in one call.
type finder struct {
	pipeline *Pipeline
	call     *Call
}

var _ catalog.Backend = (*finder)(nil)

// Call implements catalog.Backend. A call of call_tool comes here only if unwrap has left it as it is.
func (f *finder) Call(_ context.Context, invocation *catalog.Invocation) (*abi.Response, error) {
	if invocation.Request.Name == callTool {
		return nil, &abi.Error{Code: abi.CodeInvalid, Message: "call_tool cannot call itself: name the tool to call"}
	}
	query := struct {
		Query string `json:"query"`
		Limit int    `json:"limit"`
	}{Limit: 10}
	if err := json.Unmarshal(invocation.Request.Arguments, &query); err != nil {
		return nil, err
	}
	return f.pipeline.findFor(f.call, query.Query, query.Limit), nil
}

// findFor returns the declarations of the tools that match the query and that the caller may use.
func (p *Pipeline) findFor(call *Call, query string, limit int) *abi.Response {
	view, total := p.offer(&call.Caller).View, 0
	candidates := view.Tools
	if strings.TrimSpace(query) != "" {
		candidates = p.search.find(view, query)
	}
	var found []string
	for _, tool := range candidates {
		if tool.Source.Own || !p.mayList(call.Caller, "", tool) {
			continue
		}
		if total++; total <= limit {
			found = append(found, typescript.Declare(declared(tool, p.locale(call))))
		}
	}
	text := "No tool matches. Try other words: what the tool should do, or a part of its name."
	if total > 0 {
		text = fmt.Sprintf("%d of %d tools. Call one with call_tool: its name, without \"tools.\", and its arguments.\n\n%s",
			len(found), total, strings.Join(found, "\n\n"))
	}
	return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: text}}}
}

package pdktest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hako-run/hako/pdk/abi"
)

// otherTools are Options.Tools in place of a host.
type otherTools map[string]func(arguments json.RawMessage) (any, error)

// Call implements nativetools.Tools.
func (o otherTools) Call(call *abi.ToolCall) *abi.ToolEnd {
	tool, ok := o[call.Name]
	if !ok {
		return &abi.ToolEnd{Error: &abi.Error{Code: abi.CodeNotFound,
			Message: fmt.Sprintf("unknown tool %q: name it in pdktest.Options.Tools", call.Name)}}
	}
	arguments := call.Arguments
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	value, err := tool(arguments)
	var structured []byte
	if err == nil {
		structured, err = json.Marshal(value)
	}
	if err != nil {
		var failure *abi.Error
		if !errors.As(err, &failure) {
			failure = &abi.Error{Code: abi.CodeToolError, Message: err.Error()}
		}
		return &abi.ToolEnd{Error: failure}
	}
	text := abi.ToolContent{Content: abi.Content{Type: abi.Text, Text: string(structured)}}
	return &abi.ToolEnd{Content: []abi.ToolContent{text}, StructuredContent: structured}
}

// List implements nativetools.Tools. It returns the tools whose names have the query in them.
func (o otherTools) List(query *abi.ToolQuery) *abi.ToolList {
	list := &abi.ToolList{Tools: []abi.ListedTool{}}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if strings.Contains(name, query.Query) {
			list.Tools = append(list.Tools,
				abi.ListedTool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)})
		}
	}
	if list.Total = len(list.Tools); query.Limit > 0 && list.Total > query.Limit {
		list.Tools = list.Tools[:query.Limit]
	}
	return list
}

// Command web-search shows how a plugin asks a service over HTTP, and how its configuration says which: any search
// engine that answers GET with JSON.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/hako-run/hako/pdk"
)

func init() { pdk.HandleTool("web_search", find) }

func main() {}

type query struct {
	Query string `json:"query"`
	Limit int    `json:"limit"`
}

type page struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Snippet string `json:"snippet,omitempty"`
}

type found struct {
	Results []page `json:"results"`
}

// settings are the plugin's configuration; the manifest describes them.
type settings struct {
	SearchURL      string   `json:"search_url"`
	QueryParameter string   `json:"query_parameter"`
	Parameters     []string `json:"parameters"`
	Results        string   `json:"results"`
	Snippet        string   `json:"snippet"`
}

func find(ctx context.Context, in query) (*found, error) {
	var config settings
	if err := pdk.Config(ctx, &config); err != nil {
		return nil, err
	}
	parameters := append([]string{config.QueryParameter + "=" + url.QueryEscape(in.Query)}, config.Parameters...)
	response, err := pdk.Fetch(ctx, &pdk.HTTPRequest{
		URL:     config.SearchURL + "?" + strings.Join(parameters, "&"),
		Header:  map[string]string{"Accept": "application/json"},
		MaxBody: 2 << 20,
	})
	if err != nil {
		return nil, err
	}
	if response.Status != 200 {
		return nil, fmt.Errorf("the search engine answered HTTP %d: ask the operator to check the settings search_url and parameters", response.Status)
	}
	var answer any
	if err := json.Unmarshal(response.Body, &answer); err != nil {
		return nil, fmt.Errorf(
			"the search engine's answer is not JSON (%w): ask the operator to check the setting parameters", err)
	}
	list, ok := at(answer, config.Results).([]any)
	if !ok {
		return nil, fmt.Errorf(
			"the search engine's answer has no list %q: ask the operator to check the setting results", config.Results)
	}
	return config.read(list, cmp.Or(in.Limit, 10)), nil
}

func (s settings) read(list []any, limit int) *found {
	result := &found{[]page{}}
	for _, entry := range list[:min(len(list), limit)] {
		title, _ := at(entry, "title").(string)
		address, _ := at(entry, "url").(string)
		snippet, _ := at(entry, s.Snippet).(string)
		result.Results = append(result.Results, page{title, address, snippet})
	}
	return result
}

// at returns what is at a path such as "web.results" in JSON, or nil.
func at(value any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

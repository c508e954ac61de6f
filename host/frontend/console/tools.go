package console

import (
	"encoding/json"
	"strings"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/internal/clip"
)

// toolItem is a tool in the list.
type toolItem struct {
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Plugin      string `json:"plugin"`
	Upstream    bool   `json:"upstream"`
	ReadOnly    *bool  `json:"readOnly,omitempty"`
	Destructive *bool  `json:"destructive,omitempty"`
	Idempotent  *bool  `json:"idempotent,omitempty"`
	OpenWorld   *bool  `json:"openWorld,omitempty"`
}

// maxDescription bounds descriptions in the list, in bytes.
const maxDescription = 300

func newToolItem(t *catalog.Tool, language string) *toolItem {
	a := t.Spec.Annotations
	return &toolItem{
		t.Name, t.Spec.Title.In(language), t.Spec.Description.In(language), t.Source.Name, t.Source.Upstream,
		a.ReadOnlyHint, a.DestructiveHint, a.IdempotentHint, a.OpenWorldHint,
	}
}

func (c *Console) tools(q *request) (any, error) {
	plugin, search := q.param("plugin"), strings.ToLower(q.param("q"))
	var list []*toolItem
	for _, t := range c.options.Host.Catalog().View().Tools {
		if plugin != "" && t.Source.Name != plugin {
			continue
		}
		item := newToolItem(t, q.language)
		if contains(search, item.Name, item.Title, item.Description) {
			item.Description = clip.Marked(item.Description, maxDescription)
			list = append(list, item)
		}
	}
	return page(q, list, func(t *toolItem) string { return t.Name })
}

// toolDetail has all details of a tool.
type toolDetail struct {
	*toolItem
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
}

func (c *Console) tool(q *request) (any, error) {
	t, ok := c.options.Host.Catalog().View().Tool(q.PathValue("name"))
	if !ok {
		return nil, notFound("tool", q.PathValue("name"))
	}
	return &toolDetail{newToolItem(t, q.language), t.Spec.InputSchema, t.Spec.OutputSchema}, nil
}

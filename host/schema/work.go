package schema

import (
	"encoding/json"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxWork bounds the steps of checking one value: evaluations of a subschema, weighted by what they compare.
//
// A schema of a few hundred bytes can ask for more steps than can ever be done, because the validator evaluates a
// subschema again for each path that leads to it: twenty levels of "allOf": [A, A] are a million. The bound is computed
// when the schema is compiled, per depth, so that checking a value costs one look at its size.
const maxWork = 200_000

// schemaGraph is a compiled schema with its references resolved.
type schemaGraph struct {
	nodes []*jsonschema.Schema
	index map[*jsonschema.Schema]int
	// reach[s][t] is how many times t is evaluated on a value when s is. Nil until computed.
	reach [][]float64
	// visiting marks those whose reach is being computed.
	visiting []bool
}

// childEdge leads from a subschema to one that is evaluated on members of the value.
type childEdge struct {
	from, to int
}

// A label names the members that an edge applies to: anyName all properties, anyIndex all items, anyName+NAME the
// property NAME.
const (
	anyName  = "."
	anyIndex = "[]"
)

func newSchemaGraph(root *jsonschema.Schema) *schemaGraph {
	g := &schemaGraph{index: map[*jsonschema.Schema]int{}}
	g.collect(root)
	g.reach = make([][]float64, len(g.nodes))
	g.visiting = make([]bool, len(g.nodes))
	return g
}

func (g *schemaGraph) collect(s *jsonschema.Schema) {
	if _, ok := g.index[s]; ok {
		return
	}
	g.index[s] = len(g.nodes)
	g.nodes = append(g.nodes, s)
	for _, t := range inPlace(s) {
		g.collect(t)
	}
	for _, list := range children(s) {
		for _, t := range list {
			g.collect(t)
		}
	}
}

// inPlace lists the subschemas that apply to the same value as s.
func inPlace(s *jsonschema.Schema) []*jsonschema.Schema {
	list := slices.Concat(s.AllOf, s.AnyOf, s.OneOf)
	for _, t := range []*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else} {
		if t != nil {
			list = append(list, t)
		}
	}
	for _, t := range s.DependentSchemas {
		list = append(list, t)
	}
	for _, t := range s.Dependencies {
		if t, ok := t.(*jsonschema.Schema); ok {
			list = append(list, t)
		}
	}
	return list
}

// children lists the subschemas that apply to members of the value, by label.
func children(s *jsonschema.Schema) map[string][]*jsonschema.Schema {
	byLabel := map[string][]*jsonschema.Schema{}
	add := func(label string, list ...*jsonschema.Schema) {
		for _, t := range list {
			if t != nil {
				byLabel[label] = append(byLabel[label], t)
			}
		}
	}
	for name, t := range s.Properties {
		add(anyName+name, t)
	}
	for _, t := range s.PatternProperties {
		add(anyName, t)
	}
	additional, _ := s.AdditionalProperties.(*jsonschema.Schema)
	add(anyName, additional, s.PropertyNames, s.UnevaluatedProperties)
	add(anyIndex, s.PrefixItems...)
	add(anyIndex, s.Items2020, s.Contains, s.UnevaluatedItems)
	return byLabel
}

// cost is the computing time that checking a value takes.
type cost struct {
	// steps are taken for each value.
	steps float64
	// scan is the size of the patterns that each byte of a text runs through.
	scan float64
}

// scanned is the product of bytes and pattern size that counts as one step.
const scanned = 400

// weigh returns what one evaluation of s takes, beside its subschemas.
func weigh(s *jsonschema.Schema) cost {
	c := cost{steps: 1}
	if s.Enum != nil {
		c.steps += comparison(s.Enum.Values)
	}
	if s.Const != nil {
		c.steps += comparison(*s.Const)
	}
	if p, ok := s.Pattern.(pattern); ok {
		c.scan += float64(p.size)
	}
	for p := range s.PatternProperties {
		c.scan += float64(p.(pattern).size)
	}
	return c
}

// comparison returns what comparing with a constant takes: numbers are compared exactly, which is slow.
func comparison(value any) float64 {
	sum := 1.0 / 32
	switch value := value.(type) {
	case json.Number:
		return 1
	case []any:
		for _, item := range value {
			sum += comparison(item)
		}
	case map[string]any:
		for _, member := range value {
			sum += comparison(member)
		}
	}
	return sum
}

// costs returns, by depth, the most that one value at that depth takes.
func (g *schemaGraph) costs() ([]cost, error) {
	if len(g.nodes) > maxSubschemas {
		return nil, jsonError("", "refers to too many places in itself")
	}
	for i := range g.nodes {
		if !g.computeReach(i) {
			return nil, jsonError("",
				"a $ref leads back to itself without going into a property or item, so it describes nothing")
		}
	}
	edges, weights := g.edges(), make([]cost, len(g.nodes))
	for i, s := range g.nodes {
		weights[i] = weigh(s)
	}
	counts := g.reach[0]
	costs := make([]cost, 0, maxDepth)
	for c := total(counts, weights); c.steps > 0 && len(costs) < maxDepth; {
		costs = append(costs, c)
		counts, c = g.descend(counts, edges, weights)
	}
	if costs[0].steps > maxWork {
		return nil, jsonError("", "its alternatives and references multiply to too many checks: simplify it")
	}
	return costs, nil
}

// computeReach computes reach[i] and reports whether it is finite.
func (g *schemaGraph) computeReach(i int) bool {
	if g.reach[i] != nil || g.visiting[i] {
		return !g.visiting[i]
	}
	g.visiting[i] = true
	reach := make([]float64, len(g.nodes))
	reach[i] = 1
	for _, t := range inPlace(g.nodes[i]) {
		j := g.index[t]
		if !g.computeReach(j) {
			return false
		}
		addScaled(reach, g.reach[j], 1)
	}
	g.reach[i], g.visiting[i] = reach, false
	return true
}

func (g *schemaGraph) edges() map[string][]childEdge {
	edges := map[string][]childEdge{}
	for i, s := range g.nodes {
		for label, list := range children(s) {
			for _, t := range list {
				edges[label] = append(edges[label], childEdge{i, g.index[t]})
			}
		}
	}
	return edges
}

// descend goes one level down: from how often each subschema is evaluated on a value at most, to the same for its
// members, and the most that one member takes.
func (g *schemaGraph) descend(counts []float64, edges map[string][]childEdge, weights []cost) (next []float64,
	most cost) {
	next = make([]float64, len(g.nodes))
	for label, list := range edges {
		member := make([]float64, len(g.nodes))
		g.follow(member, counts, list)
		if label != anyIndex && label != anyName {
			g.follow(member, counts, edges[anyName])
		}
		c := total(member, weights)
		most = cost{max(most.steps, c.steps), max(most.scan, c.scan)}
		for i := range next {
			next[i] = max(next[i], member[i])
		}
	}
	return next, most
}

func (g *schemaGraph) follow(sum, counts []float64, edges []childEdge) {
	for _, e := range edges {
		if counts[e.from] > 0 {
			addScaled(sum, g.reach[e.to], counts[e.from])
		}
	}
}

func addScaled(sum, v []float64, factor float64) {
	for i := range sum {
		if v[i] > 0 {
			sum[i] = min(sum[i]+v[i]*factor, 1e100)
		}
	}
}

func total(counts []float64, weights []cost) cost {
	var sum cost
	for i, n := range counts {
		sum.steps += n * weights[i].steps
		sum.scan += n * weights[i].scan
	}
	return sum
}

// work bounds the steps that checking a value takes.
func work(costs []cost, s *shape) float64 {
	sum := 0.0
	for depth, c := range costs {
		sum += c.steps*s.load[depth] + c.scan*s.bytes[depth]/scanned
	}
	return sum
}

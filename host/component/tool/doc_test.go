package tool

import (
	"os"
	"strings"
	"testing"
)

// TestDocument holds the tables of docs/components.md and its translation against the code.
func TestDocument(t *testing.T) {
	t.Parallel()
	for page, heading := range map[string]string{
		"components.md":    "## Tools from WIT\n",
		"components.ja.md": "## WIT からツールへ\n",
	} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			checkPage(t, "../../../docs/"+page, heading)
		})
	}
}

// checkPage checks the names and the examples of values in the section below the heading.
func checkPage(t *testing.T, path, heading string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(data), heading)
	if !found {
		t.Fatalf("the page has no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	names, values := 0, 0
	for row := range strings.Lines(section) {
		cells := strings.Split(strings.TrimSpace(row), " | ")
		first, last := code(cells[0]), code(cells[len(cells)-1])
		switch {
		case len(cells) == 2 && strings.Contains(row, "_") && !strings.Contains(row, "result"), first == "get-weather":
			names++
			if got := toolName(interfaceOf(first), first[strings.Index(first, "#")+1:]); got != last {
				t.Errorf("%s is the tool %s, not %s", first, got, last)
			}
		case len(cells) == 3 && last != "":
			values++
			checkExample(t, first, last)
		}
	}
	if names != 3 || values != 18 {
		t.Errorf("the page has %d names and %d examples of values", names, values)
	}
}

// code returns the first code in a cell.
func code(cell string) string {
	_, cell, _ = strings.Cut(cell, "`")
	cell, _, _ = strings.Cut(cell, "`")
	return cell
}

// checkExample checks that the JSON of an example is a value of the type.
func checkExample(t *testing.T, wit, json string) {
	t.Helper()
	for _, form := range forms {
		if form.t.String() != wit {
			continue
		}
		args, err := decodeArguments(function(form.t, nil), []byte(`{"v":`+json+`}`))
		if err != nil {
			t.Errorf("%s: %v", wit, err)
			return
		}
		e := encoder{limit: 1000}
		if err := e.value(form.t, args[0]); err != nil || string(e.out) != json {
			t.Errorf("%s: %s becomes %s, %v", wit, json, e.out, err)
		}
		return
	}
	t.Errorf("no test has a value of the type %s", wit)
}

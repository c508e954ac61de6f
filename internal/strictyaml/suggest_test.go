package strictyaml

import (
	"slices"
	"strings"
	"testing"
)

func TestSuggest(t *testing.T) {
	t.Parallel()
	known := []string{"calculate_overtime", "create_task", "file_read", "file_write", "get_task", "get_task_context",
		"get_weather", "list_employees", "list_tasks", "send_slack_dm"}
	for name, want := range map[string]string{
		"get_wether":                      "get_weather",
		"weather":                         "get_weather",
		"mcp__hako__get_weather":          "get_weather",
		"functions.get_weather":           "get_weather",
		"read_file":                       "file_read",
		"ReadFile":                        "file_read",
		"list_employee":                   "list_employees",
		"employees.list":                  "list_employees",
		"get_tasks":                       "get_task list_tasks get_task_context",
		"task_create":                     "create_task",
		"tasks_create_task":               "create_task",
		"tasks.create":                    "create_task",
		"addTask":                         "create_task",
		"remove_task":                     "create_task get_task list_tasks",
		"file_save":                       "file_write",
		"weather_forecast":                "get_weather",
		"hr_overtime":                     "calculate_overtime",
		"create_invoice":                  "",
		"list":                            "",
		"book_flight":                     "",
		"":                                "",
		strings.Repeat("get_weather", 20): "",
	} {
		if got := Suggest(name, known); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q is near %q, want %s", name, got, want)
		}
	}
}

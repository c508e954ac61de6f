package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/pdk/abi"
)

// hostFunctions are the functions of each import module by their types: parameters, a colon and the result, where i is
// i32, l is i64 and d is f64. A test of package extism holds that they are those which the host links.
var hostFunctions = map[string]map[string]string{
	abi.CoreModule: {
		"i:": "take", "ii:": "respond updated", "ii:i": "blob", "iii:": "log", "ddii:": "progress", ":i": "canceled",
	},
	abi.HTTPModule:  {"i:": "close", "i:i": "wait", "iii:i": "read", "iiii:i": "request start"},
	abi.SQLModule:   {":i": "blobs commit rollback", "i:i": "begin", "iiii:i": "exec query"},
	abi.ExecModule:  {"i:": "close", "i:i": "wait", "ii:i": "start", "iii:l": "read"},
	abi.ToolsModule: {":i": "wait", "ii:i": "list start"},
	wasiModule: {
		":i":  "sched_yield",
		"i:":  "proc_exit",
		"i:i": "fd_close fd_datasync fd_sync proc_raise",
		"ii:i": "args_get args_sizes_get clock_res_get environ_get environ_sizes_get fd_fdstat_get " +
			"fd_fdstat_set_flags fd_filestat_get fd_prestat_get fd_renumber fd_tell random_get sock_shutdown",
		"iii:i":       "fd_prestat_dir_name path_create_directory path_remove_directory path_unlink_file sock_accept",
		"iiii:i":      "fd_read fd_write poll_oneoff",
		"iiiii:i":     "path_filestat_get path_symlink sock_send",
		"iiiiii:i":    "path_readlink path_rename sock_recv",
		"iiiiiii:i":   "path_link",
		"iiiiillii:i": "path_open",
		"iiiilli:i":   "path_filestat_set_times",
		"iiili:i":     "fd_pread fd_pwrite fd_readdir",
		"il:i":        "fd_filestat_set_size",
		"ili:i":       "clock_time_get",
		"ilii:i":      "fd_seek",
		"ill:i":       "fd_allocate fd_fdstat_set_rights",
		"illi:i":      "fd_advise fd_filestat_set_times",
	},
	ExtismEnv: {
		":":    "reset",
		":i":   "get_log_level http_status_code",
		":l":   "error_get http_headers input_length input_offset memory_bytes output_length output_offset",
		"l:":   "error_set free log_debug log_error log_info log_trace log_warn",
		"l:i":  "input_load_u8 load_u8",
		"l:l":  "alloc config_get input_load_u64 length length_unsafe load_u64 var_get",
		"li:":  "store_u8",
		"ll:":  "input_set output_set store_u64 var_set",
		"ll:l": "http_request",
	},
	ExtismUser: {
		":":   "notify_prompt_list_changed notify_resource_list_changed notify_tool_list_changed",
		":l":  "list_roots",
		"l:":  "notify_logging_message notify_progress notify_resource_updated notify_url_elicitation_completed",
		"l:l": "create_elicitation create_message",
	},
}

// HostFunctions returns the functions that a guest can import from a module, by name.
func HostFunctions(module string) map[string]wasmfile.FuncType {
	return maps.Clone(functionsByModule()[module])
}

var functionsByModule = sync.OnceValue(func() map[string]map[string]wasmfile.FuncType {
	modules := make(map[string]map[string]wasmfile.FuncType)
	for module, signatures := range hostFunctions {
		modules[module] = make(map[string]wasmfile.FuncType)
		for signature, names := range signatures {
			params, results, _ := strings.Cut(signature, ":")
			kind := wasmfile.FuncType{Params: valueTypesOf(params), Results: valueTypesOf(results)}
			for name := range strings.FieldsSeq(names) {
				modules[module][name] = kind
			}
		}
	}
	return modules
})

func valueTypesOf(letters string) []wasmfile.ValueType {
	byLetter := map[rune]wasmfile.ValueType{'i': wasmfile.I32, 'l': wasmfile.I64, 'd': wasmfile.F64}
	var types []wasmfile.ValueType
	for _, letter := range letters {
		types = append(types, byLetter[letter])
	}
	return types
}

// checkFunction checks that a function of a known import module is there, with the type that the guest takes it for.
func checkFunction(i wasmfile.Import) error {
	functions := functionsByModule()[i.Module]
	want, ok := functions[i.Name]
	switch {
	case !ok:
		return fmt.Errorf("the module imports functions from %q that hako does not have: %s", i.Module,
			strictyaml.Unknown("function", i.Name, slices.Sorted(maps.Keys(functions))))
	case i.Type != nil && i.Type.String() != want.String():
		return fmt.Errorf("the module imports %q from %q as a function %s, but it is %s: rebuild it with a PDK for "+
			"this import module", i.Name, i.Module, i.Type, want)
	}
	return nil
}

package process

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

const supervised = false

func supervise(string, []string) int { return 1 }

func separate(*exec.Cmd) {} // only supervisors need it

// TerminateGroup kills the process, because there is no termination signal. Its descendants end with its job.
func TerminateGroup(p *os.Process) { KillGroup(p) }

// KillGroup kills the process. Its descendants end with its job, when the group that StartGroup returned is closed.
func KillGroup(p *os.Process) { _ = p.Kill() }

// startGroup starts the program in a job object. The program is suspended until it is in the job, so that it cannot
// start others outside of it.
func startGroup(command *exec.Cmd) (io.Closer, error) {
	group, err := newJob()
	if err != nil {
		return nil, err
	}
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.CreationFlags |= windows.CREATE_SUSPENDED
	if command.Cancel != nil {
		command.Cancel = group.Close
	}
	if err := command.Start(); err != nil {
		return nil, errors.Join(err, group.Close())
	}
	err = group.add(command.Process)
	if err == nil {
		err = resume(command.Process)
	}
	if err != nil {
		return nil, errors.Join(err, command.Process.Kill(), ignoreExit(command.Wait()), group.Close())
	}
	return group, nil
}

// job is a job object. Its processes, and all that they start, are killed when it is closed: by Close, or by the system
// when this process ends in any way. It is safe for concurrent use.
type job struct {
	mu     sync.Mutex
	handle windows.Handle // zero after Close
}

func newJob() (*job, error) {
	handle, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, os.NewSyscallError("CreateJobObject", err)
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
			LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
		},
	}
	if _, err := windows.SetInformationJobObject(handle, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		return nil, errors.Join(os.NewSyscallError("SetInformationJobObject", err), windows.CloseHandle(handle))
	}
	return &job{handle: handle}, nil
}

func (j *job) add(p *os.Process) error {
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(p.Pid))
	if err != nil {
		return os.NewSyscallError("OpenProcess", err)
	}
	defer windows.CloseHandle(process)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.handle == 0 {
		return os.ErrClosed
	}
	return os.NewSyscallError("AssignProcessToJobObject", windows.AssignProcessToJobObject(j.handle, process))
}

// Close kills the processes of the job. It may be called several times.
func (j *job) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.handle == 0 {
		return nil
	}
	err := os.NewSyscallError("TerminateJobObject", windows.TerminateJobObject(j.handle, 1))
	err = errors.Join(err, os.NewSyscallError("CloseHandle", windows.CloseHandle(j.handle)))
	j.handle = 0
	return err
}

// resume lets a process that was started suspended run. Package os has closed the handle of its only thread.
func resume(p *os.Process) error {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return os.NewSyscallError("CreateToolhelp32Snapshot", err)
	}
	defer windows.CloseHandle(snapshot)
	entry := windows.ThreadEntry32{}
	entry.Size = uint32(unsafe.Sizeof(entry))
	for err = windows.Thread32First(snapshot, &entry); err == nil; err = windows.Thread32Next(snapshot, &entry) {
		if entry.OwnerProcessID != uint32(p.Pid) {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return os.NewSyscallError("OpenThread", err)
		}
		_, err = windows.ResumeThread(thread)
		return errors.Join(os.NewSyscallError("ResumeThread", err), windows.CloseHandle(thread))
	}
	return os.NewSyscallError("Thread32Next", err)
}

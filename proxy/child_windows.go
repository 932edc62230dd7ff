package proxy

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// isolate gives a command a process group of its own, so that Ctrl+C in a console reaches us alone.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// jobs holds the job object of each server process, by its id. A job is what a process group is elsewhere: whatever the
// process starts belongs to it too, and all of it ends when the job is closed, which the system does if we die.
var jobs sync.Map // int → windows.Handle

// adopt puts a process that has just started into a job of its own. Without one, only the process itself can be ended.
func adopt(p *os.Process) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err == nil {
		err = assign(job, p.Pid)
	}
	if err != nil {
		windows.CloseHandle(job)
		return
	}
	jobs.Store(p.Pid, job)
}

// assign puts a process into a job.
func assign(job windows.Handle, pid int) error {
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return err
	}
	defer windows.CloseHandle(process)
	return windows.AssignProcessToJobObject(job, process)
}

// disown closes the job of a process that has ended, and with it what is left in the job.
func disown(p *os.Process) {
	if job, ok := jobs.LoadAndDelete(p.Pid); ok {
		windows.CloseHandle(job.(windows.Handle))
	}
}

// terminateGroup does nothing: there is no gentle way to end a process that has no window.
func terminateGroup(*os.Process) {}

// killGroup ends the process and whatever it has started.
func killGroup(p *os.Process) {
	if job, ok := jobs.Load(p.Pid); !ok || windows.TerminateJobObject(job.(windows.Handle), 1) != nil {
		p.Kill()
	}
}

// accounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION.
type accounting struct {
	totalUserTime, totalKernelTime, periodUserTime, periodKernelTime int64
	pageFaults, totalProcesses, activeProcesses, terminated          uint32
}

// groupAlive reports whether any process of the job is left.
func groupAlive(p *os.Process) bool {
	job, ok := jobs.Load(p.Pid)
	if !ok {
		return false
	}
	var a accounting
	const basicAccounting = 1 // JobObjectBasicAccountingInformation
	err := windows.QueryInformationJobObject(job.(windows.Handle), basicAccounting,
		uintptr(unsafe.Pointer(&a)), uint32(unsafe.Sizeof(a)), nil)
	return err == nil && a.activeProcesses > 0
}

// describeExit says how a process ended.
func describeExit(state *os.ProcessState) string {
	return fmt.Sprintf("exit status %d", state.ExitCode())
}

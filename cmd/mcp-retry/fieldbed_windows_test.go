package main

import "os/exec"

func ownGroup(*exec.Cmd) {}

func interruptGroup(int) bool { return false }

"""What the monitor is fed from where the job is over: files that are shown whole, recordings that are played, folders."""

from tuimon.playback.group import FileGroup, of_path
from tuimon.playback.playing import Playback
from tuimon.playback.position import Position
from tuimon.playback.whole import ELSEWHERE, WholeFile, folded

__all__ = ["ELSEWHERE", "FileGroup", "Playback", "Position", "WholeFile", "folded", "of_path"]

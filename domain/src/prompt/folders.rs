//! Where an agent's files are.

/// The folders, for a lead and for a subagent alike: they share them.
pub(super) const FOLDERS: &str = "\
<working_directory>
Your default directory is /mnt/user-data/workspace; relative paths start there.
- /mnt/user-data/workspace is for the work itself: `notes.md`, `src/main.py`
- /mnt/user-data/uploads holds what the user gave: `../uploads/data.csv`
- /mnt/user-data/outputs is for what the user is to get: `../outputs/report.md`
</working_directory>";

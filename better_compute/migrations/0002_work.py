from better_compute.contract.migrations import ComputeMigration, RunSqlFile


class Migration(ComputeMigration):
    dependencies = [("compute", "0001_ledger")]
    operations = [RunSqlFile("better_compute.store.schema", "0002_work.sql", "0002_work_down.sql")]
